import { useState } from 'preact/hooks'
import { hrefWith, navigate } from './address.ts'
import { formatDateTime } from './format.ts'
import { isoTime, parseFieldSpan, type TimeSpan, timeParameters, toFieldValue } from './span.ts'

const zone = Intl.DateTimeFormat().resolvedOptions().timeZone

/**
 * Two fields for a custom range. They keep their initial values, so that the minute ticker never changes them while
 * somebody types.
 */
export function SpanFields({ span }: { span: TimeSpan }) {
  const [problem, setProblem] = useState<string | null>(null)
  const [{ since, until }] = useState(span)
  const apply = (form: HTMLFormElement) => {
    const fields = new FormData(form)
    const chosen = parseFieldSpan(String(fields.get('since')), String(fields.get('until')))
    if (typeof chosen === 'string') setProblem(chosen)
    else navigate(hrefWith(timeParameters(chosen)))
  }
  return (
    <details class="menu span-fields">
      <summary>
        {span.last
          ? 'custom range'
          : `${formatDateTime(isoTime(since))} to ${formatDateTime(isoTime(until))}`}
      </summary>
      <form
        class="menu-body"
        noValidate
        onSubmit={(event) => {
          event.preventDefault()
          apply(event.currentTarget)
        }}
      >
        <label>
          From
          <input type="datetime-local" name="since" defaultValue={toFieldValue(since)} />
        </label>
        <label>
          Until
          <input type="datetime-local" name="until" defaultValue={toFieldValue(until)} />
        </label>
        <p class="hint">Time zone: {zone}</p>
        {problem && (
          <p class="note bad" role="alert">
            {problem}
          </p>
        )}
        <button type="submit">Show</button>
      </form>
    </details>
  )
}
