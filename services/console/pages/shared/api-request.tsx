import { currentPage } from './address.ts'
import { CodeBlock } from './code-block.tsx'
import { person } from './person.ts'

/** Shows the page's API requests as curl commands. */
export function ApiRequest({ paths }: { paths: readonly string[] }) {
  return (
    <details class="api-request">
      <summary>As API request</summary>
      <p class="hint">
        Set <code>SECRET_KEY</code> to a secret key of the {currentPage.value?.environment}{' '}
        environment with the required scopes.
      </p>
      <CodeBlock code={paths.map(curlCommand).join('\n')} />
    </details>
  )
}

// Percent-encodes single quotes, which would end the shell string.
const curlCommand = (path: string): string =>
  `curl -H "Authorization: Bearer $SECRET_KEY" '${person.value?.api_url}${path.replaceAll("'", '%27')}'`
