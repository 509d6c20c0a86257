import { useState } from 'preact/hooks'
import { hrefWith, navigate } from './address.ts'
import { CopyButton } from './copy.tsx'
import { FormField } from './form-field.tsx'
import { formatDateTime } from './format.ts'
import { Menu } from './menu.tsx'
import { isoTime, parseFieldSpan, type TimeSpan, timeParameters, toFieldValue } from './span.ts'

const zone = Intl.DateTimeFormat().resolvedOptions().timeZone

/** Fields for a custom range. They keep their initial values, so that `now` never changes them during typing. */
export function SpanFields({ span }: { span: TimeSpan }) {
  const [problem, setProblem] = useState<string>()
  const [{ since, until }] = useState(span)
  const apply = (form: HTMLFormElement) => {
    const fields = new FormData(form)
    const range = parseFieldSpan(String(fields.get('since')), String(fields.get('until')))
    if (typeof range === 'string') setProblem(range)
    else navigate(hrefWith(timeParameters(range)))
  }
  const exactLink = hrefWith(timeParameters({ since, until, last: undefined }))
  return (
    <Menu
      label={
        span.last
          ? 'Custom'
          : `${formatDateTime(isoTime(since))} to ${formatDateTime(isoTime(until))}`
      }
    >
      <form
        noValidate
        onSubmit={(event) => {
          event.preventDefault()
          apply(event.currentTarget)
        }}
      >
        <FormField label="From">
          <input type="datetime-local" name="since" defaultValue={toFieldValue(since)} />
        </FormField>
        <FormField label="Until" hint={`Time zone: ${zone}`} error={problem}>
          <input type="datetime-local" name="until" defaultValue={toFieldValue(until)} />
        </FormField>
        <button type="submit" class="button">
          Show
        </button>
      </form>
      <CopyButton
        label="Copy link to this exact time range"
        text={new URL(exactLink, window.location.href).href}
      />
    </Menu>
  )
}
