import { goTo, hrefWith, place } from './address.ts'
import { Copy } from './copy.tsx'
import { usePageKeys } from './keys.ts'
import {
  hasUnreadableTimes,
  type Length,
  now,
  spanOf,
  stepped,
  type TimeSpan,
  timeParameters,
} from './span.ts'
import { SpanFields } from './span-fields.tsx'

const titles: Record<Length, string> = {
  '1h': 'last hour',
  '24h': 'last 24 hours',
  '7d': 'last 7 days',
  '30d': 'last 30 days',
}

const hrefOfStep = (span: TimeSpan, step: 'earlier' | 'later') =>
  hrefWith(timeParameters(stepped(span, step, now.value)))

/** The usual lengths of time, any time by two fields, and steps. A relative time stays relative in the address. */
export function SpanChoice({ span }: { span: TimeSpan }) {
  const query = place.value?.query
  usePageKeys(({ key }) => {
    // Of the address, because a page is drawn only after keys that follow each other quickly.
    const shown = place.value && spanOf(place.value.query, now.value)
    if (shown && key === '[') goTo(hrefOfStep(shown, 'earlier'))
    if (shown && key === ']') goTo(hrefOfStep(shown, 'later'))
  }, [])
  return (
    <nav class="spans" aria-label="Time">
      {Object.entries(titles).map(([length, title]) => (
        <a
          key={length}
          href={hrefWith({ last: length, since: null, until: null })}
          aria-current={span.last === length ? 'true' : undefined}
        >
          {title}
        </a>
      ))}
      <a href={hrefOfStep(span, 'earlier')}>earlier</a>
      {!span.last && <a href={hrefOfStep(span, 'later')}>later</a>}
      <SpanFields key={span.last ?? `${span.since} ${span.until}`} span={span} />
      {span.last && (
        <Copy
          class="plain"
          label="copy link to exactly this"
          title="The link keeps these times"
          text={
            new URL(hrefWith(timeParameters({ ...span, last: undefined })), window.location.href)
              .href
          }
        />
      )}
      {span.last && query && hasUnreadableTimes(query) && (
        <p>The time in the address cannot be read, so these are the {titles[span.last]}.</p>
      )}
    </nav>
  )
}
