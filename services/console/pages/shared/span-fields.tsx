import { useState } from 'preact/hooks'
import { goTo, hrefWith } from './address.ts'
import { exact } from './format.ts'
import { fieldSpan, fieldTime, isoTime, type TimeSpan, timeParameters } from './span.ts'

const zone = Intl.DateTimeFormat().resolvedOptions().timeZone

/** Two fields for any time. They keep what they began with, so that nothing changes below the hand as time goes on. */
export function SpanFields({ span }: { span: TimeSpan }) {
  const [refusal, setRefusal] = useState<string | null>(null)
  const [{ since, until }] = useState(span)
  const show = (form: HTMLFormElement) => {
    const sent = new FormData(form)
    const chosen = fieldSpan(String(sent.get('since')), String(sent.get('until')))
    if (typeof chosen === 'string') setRefusal(chosen)
    else goTo(hrefWith(timeParameters(chosen)))
  }
  return (
    <details class="menu span-fields">
      <summary>
        {span.last ? 'other times' : `${exact(isoTime(since))} to ${exact(isoTime(until))}`}
      </summary>
      <form
        class="menu-body"
        noValidate
        onSubmit={(event) => {
          event.preventDefault()
          show(event.currentTarget)
        }}
      >
        <label>
          From
          <input type="datetime-local" name="since" defaultValue={fieldTime(since)} />
        </label>
        <label>
          Until
          <input type="datetime-local" name="until" defaultValue={fieldTime(until)} />
        </label>
        <p class="hint">Times are those of {zone}.</p>
        {refusal && (
          <p class="note bad" role="alert">
            {refusal}
          </p>
        )}
        <button type="submit">Show</button>
      </form>
    </details>
  )
}
