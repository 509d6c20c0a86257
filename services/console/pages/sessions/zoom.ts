import { type TimeSpan, widened } from '../shared/span.ts'

const before = new Map<string, TimeSpan>()
const keyOf = ({ since, until }: TimeSpan) => `${since} ${until}`
const mostRemembered = 100

/** Remembers what a part was chosen of, so that zooming out leads back to it. */
export function rememberZoom(part: TimeSpan, whole: TimeSpan): void {
  before.set(keyOf(part), whole)
  const [oldest] = before.keys()
  if (before.size > mostRemembered && oldest !== undefined) before.delete(oldest)
}

/** What the time was chosen of, or else a time twice as long. */
export const zoomedOut = (span: TimeSpan, now: number): TimeSpan =>
  before.get(keyOf(span)) ?? widened(span, now)
