import { CodeBlock } from '../shared/code-block.tsx'
import { Part } from '../shared/parts.tsx'

/** What a page needs to send its sessions, with the key filled in. */
export function Snippet({ publishableKey }: { publishableKey: string }) {
  const code = `<script type="module">
  import { start } from '${window.location.origin}/t.js'
  const tidegate = start({ publishableKey: '${publishableKey}' })
  const { sealedToken } = await tidegate.getSession() // send it with the form
</script>`
  return (
    <Part title="In a page">
      <CodeBlock code={code} />
    </Part>
  )
}
