import { CodeBlock } from '../shared/code-block.tsx'
import { Panel } from '../shared/panel.tsx'
import { person } from '../shared/person.ts'
import { serverPath } from '../shared/server-path.ts'
import { snippetsOf } from './snippets.ts'

export function SendSessions({ publishableKey }: { publishableKey: string }) {
  const snippets = snippetsOf({ publishableKey, url: person.value?.api_url ?? '' })
  return (
    <Panel title="Send sessions">
      {snippets.map(({ title, code }, i) => (
        <details key={title} name="snippet" open={i === 0}>
          <summary>{title}</summary>
          <CodeBlock code={code} />
        </details>
      ))}
      <p class="hint">
        Next, verify the token in your back end: see the{' '}
        <a href={`${serverPath}/docs/guide/server`}>guide</a>.
      </p>
    </Panel>
  )
}
