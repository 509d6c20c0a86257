import { formatAgo, formatDateTime } from './format.ts'
import { now } from './span.ts'

/** A relative time with the exact time as its tooltip. */
export function RelativeTime({ at }: { at: string }) {
  return (
    <time dateTime={at} title={formatDateTime(at)}>
      {formatAgo(at, Math.min(Date.now(), now.value))}
    </time>
  )
}
