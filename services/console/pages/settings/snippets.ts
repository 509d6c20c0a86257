export interface Snippet {
  title: string
  code: string
}

export interface SnippetOptions {
  publishableKey: string
  /** Base URL at which customers' pages reach the API. */
  url: string
}

/** Returns snippets that add the SDK to a page. */
export function snippetsOf({ publishableKey, url }: SnippetOptions): Snippet[] {
  return [
    {
      title: 'Script tag',
      code: `<script type="module">
  import { start } from '${url}/t.js'

  const tidegate = start({ publishableKey: '${publishableKey}' })
  const { sealedToken } = await tidegate.getSession() // send it with the form
</script>`,
    },
    {
      title: 'npm',
      code: `// npm install ${url}/sdk/browser.tgz
import { start } from '@tidegate/browser'

const tidegate = start({ publishableKey: '${publishableKey}', endpoint: '${url}' })
const { sealedToken } = await tidegate.getSession() // send it with the form`,
    },
  ]
}
