import { serverPath } from '../shared/address.ts'
import { CodeBlock } from '../shared/code-block.tsx'
import { Panel } from '../shared/panel.tsx'
import { person } from '../shared/person.ts'
import { Loaded } from '../shell/loaded.tsx'
import { isForPages, useKeys } from './keys.tsx'
import { snippetsOf } from './snippets.ts'

const guide = `${serverPath}/docs/guide`

/** Snippets with the environment's publishable key. */
export function Install() {
  const { list, keys } = useKeys()
  const publishableKey = keys.find(isForPages)?.display_key ?? 'pk_...'
  const snippets = snippetsOf({ publishableKey, url: person.value?.api_url ?? '' })
  return (
    <Loaded response={list.first} lines={8}>
      {() => (
        <Panel title="Send sessions">
          {snippets.map(({ title, code }, i) => (
            <details key={title} name="snippet" open={i === 0}>
              <summary>{title}</summary>
              <CodeBlock code={code} />
            </details>
          ))}
          <p class="hint">
            For React and Next, see the <a href={`${guide}/browser-sdk#package`}>guide</a>. Then
            verify the token in your back end, for example with{' '}
            <a href={`${guide}/quickstart#3-verify-it-in-your-back-end`}>Express</a>.
          </p>
        </Panel>
      )}
    </Loaded>
  )
}
