import { hrefOf } from '../shared/address.ts'
import { isoTime, type TimeSpan } from '../shared/span.ts'

export const timesOf = ({ since, until }: TimeSpan) => ({
  since: isoTime(since),
  until: isoTime(until),
})

/** The list of sessions behind a number: its time is relative where that of the page is. */
export function sessionsHref(span: TimeSpan, filters: Record<string, string>): string {
  const times = span.last ? { last: span.last } : timesOf(span)
  return hrefOf({ page: 'sessions', query: new URLSearchParams({ ...times, ...filters }) })
}
