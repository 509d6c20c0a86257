import { currentPage, hrefWith, navigate } from './address.ts'
import { usePageKeys } from './keys.ts'
import {
  hasInvalidTimes,
  now,
  type Preset,
  shiftSpan,
  spanOf,
  type TimeSpan,
  timeParameters,
} from './span.ts'
import { SpanFields } from './span-fields.tsx'

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
    <nav class="spans" aria-label="Time">
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
