import { currentPage, hrefWith, navigate } from './address.ts'
import { CopyButton } from './copy.tsx'
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
  '1h': 'last hour',
  '24h': 'last 24 hours',
  '7d': 'last 7 days',
  '30d': 'last 30 days',
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
      {Object.entries(titles).map(([preset, title]) => (
        <a
          key={preset}
          href={hrefWith({ last: preset, since: null, until: null })}
          aria-current={span.last === preset ? 'true' : undefined}
        >
          {title}
        </a>
      ))}
      <a href={hrefOfStep(span, 'earlier')}>earlier</a>
      {!span.last && <a href={hrefOfStep(span, 'later')}>later</a>}
      <SpanFields key={span.last ?? `${span.since} ${span.until}`} span={span} />
      {span.last && (
        <CopyButton
          class="plain"
          label="copy link"
          title="Copy a link to this exact time range"
          text={
            new URL(hrefWith(timeParameters({ ...span, last: undefined })), window.location.href)
              .href
          }
        />
      )}
      {span.last && query && hasInvalidTimes(query) && (
        <p>The time range in the URL is invalid. Showing the {titles[span.last]}.</p>
      )}
    </nav>
  )
}
