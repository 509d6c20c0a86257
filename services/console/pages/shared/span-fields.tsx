import { useState } from 'preact/hooks'
import { hrefWith, navigate } from './address.ts'
import { formatDateTime } from './format.ts'
import { isoTime, parseFieldSpan, type TimeSpan, timeParameters, toFieldValue } from './span.ts'

const zone = Intl.DateTimeFormat().resolvedOptions().timeZone

/** Fields for a custom range. They keep their initial values, so that `now` never changes them during typing. */
export function SpanFields({ span }: { span: TimeSpan }) {
  const [problem, setProblem] = useState<string | null>(null)
  const [{ since, until }] = useState(span)
  const apply = (form: HTMLFormElement) => {
    const fields = new FormData(form)
    const range = parseFieldSpan(String(fields.get('since')), String(fields.get('until')))
    if (typeof range === 'string') setProblem(range)
    else navigate(hrefWith(timeParameters(range)))
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
