import { useState } from 'preact/hooks'
import { currentPage, hrefWith, navigate } from './address.ts'
import { CopyButton } from './copy.tsx'
import { FormField } from './form-field.tsx'
import { formatDateTime } from './format.ts'
import { usePageKeys } from './keys.ts'
import { Menu } from './menu.tsx'
import {
  hasInvalidTimes,
  isoTime,
  now,
  type Preset,
  shiftSpan,
  spanOf,
  type TimeSpan,
  timeParameters,
  toFieldValue,
} from './span.ts'

const titles: Record<Preset, string> = {
  '1h': 'hour',
  '24h': '24 hours',
  '7d': '7 days',
  '30d': '30 days',
}

const hrefOfStep = (span: TimeSpan, step: 'earlier' | 'later') =>
  hrefWith(timeParameters(shiftSpan(span, step, now.value)))

/** Period picker: presets, a custom range, and steps back and forth. */
export function SpanChoice({ span }: { span: TimeSpan }) {
  const query = currentPage.value?.query
  usePageKeys(({ key }) => {
    // Uses the URL instead of `span`, because rendering lags behind quick key presses.
    const current = currentPage.value && spanOf(currentPage.value.query, now.value)
    if (current && key === '[') navigate(hrefOfStep(current, 'earlier'))
    if (current && key === ']') navigate(hrefOfStep(current, 'later'))
  }, [])
  return (
    <nav class="row spans" aria-label="Time">
      <div class="segmented">
        {Object.entries(titles).map(([preset, title]) => (
          <a
            key={preset}
            href={hrefWith({ last: preset, since: null, until: null })}
            title={`Last ${title}`}
            aria-current={span.last === preset ? 'true' : undefined}
          >
            {preset}
          </a>
        ))}
      </div>
      <div class="segmented">
        <a href={hrefOfStep(span, 'earlier')} aria-label="Earlier" title="Earlier ([)">
          ←
        </a>
        {!span.last && (
          <a href={hrefOfStep(span, 'later')} aria-label="Later" title="Later (])">
            →
          </a>
        )}
      </div>
      <SpanFields key={span.last ?? `${span.since} ${span.until}`} span={span} />
      {span.last && query && hasInvalidTimes(query) && (
        <p>The time range in the URL is invalid. Showing the last {titles[span.last]}.</p>
      )}
    </nav>
  )
}

const zone = Intl.DateTimeFormat().resolvedOptions().timeZone

/** Fields for a custom range. They keep their initial values, so that `now` never changes them during typing. */
function SpanFields({ span }: { span: TimeSpan }) {
  const [{ since, until }] = useState(span)
  const apply = (form: HTMLFormElement) => {
    const times = [...new FormData(form).values()].map((text) => Date.parse(String(text)))
    // In either order.
    const range = { since: Math.min(...times), until: Math.max(...times), last: undefined }
    navigate(hrefWith(timeParameters(range)))
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
        onSubmit={(event) => {
          event.preventDefault()
          apply(event.currentTarget)
        }}
      >
        <FormField label="From">
          <input type="datetime-local" name="since" required defaultValue={toFieldValue(since)} />
        </FormField>
        <FormField label="Until" hint={`Time zone: ${zone}`}>
          <input type="datetime-local" name="until" required defaultValue={toFieldValue(until)} />
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
