import { place } from './address.ts'
import { CodeBlock } from './code-block.tsx'
import { person } from './person.ts'

/** The requests that answer what the page shows, for whoever would rather have it by API. */
export function ApiRequest({ paths }: { paths: readonly string[] }) {
  return (
    <details class="api-request">
      <summary>As API request</summary>
      <p class="hint">
        With a secret key of the environment {place.value?.environment} in <code>SECRET_KEY</code>,
        which needs the scopes for it.
      </p>
      <CodeBlock code={paths.map(curlOf).join('\n')} />
    </details>
  )
}

// A quote would end the shell's text, and URLs mean the same without one.
const curlOf = (path: string): string =>
  `curl -H "Authorization: Bearer $SECRET_KEY" '${person.value?.api_url}${path.replaceAll("'", '%27')}'`
