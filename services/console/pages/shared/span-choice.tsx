import { hrefWith } from './address.ts'
import { exact } from './format.ts'
import { isoTime, type lengths, type TimeSpan } from './span.ts'

const titles: Record<keyof typeof lengths, string> = {
  '1h': 'last hour',
  '24h': 'last 24 hours',
  '7d': 'last 7 days',
  '30d': 'last 30 days',
}

/** Links to the usual lengths of time. A relative one stays relative in the address. */
export function SpanChoice({ span }: { span: TimeSpan }) {
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
      {!span.last && (
        <span>
          {exact(isoTime(span.since))} to {exact(isoTime(span.until))}
        </span>
      )}
    </nav>
  )
}
