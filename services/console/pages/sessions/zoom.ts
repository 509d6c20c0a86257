import { type TimeSpan, widenSpan } from '../shared/span.ts'

const outerSpans = new Map<string, TimeSpan>()
const keyOf = ({ since, until }: TimeSpan) => `${since} ${until}`
const maxRemembered = 100

/** Remembers the period before zooming in, so that zooming out returns to it. */
export function rememberZoom(inner: TimeSpan, outer: TimeSpan): void {
  outerSpans.set(keyOf(inner), outer)
  const [oldest] = outerSpans.keys()
  if (outerSpans.size > maxRemembered && oldest !== undefined) outerSpans.delete(oldest)
}

/** Returns the period before zooming in, or if unknown, one twice as long. */
export const zoomedOut = (span: TimeSpan, now: number): TimeSpan =>
  outerSpans.get(keyOf(span)) ?? widenSpan(span, now)
