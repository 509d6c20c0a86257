import { hrefOf } from '../shared/address.ts'
import { isoTime, type TimeSpan } from '../shared/span.ts'

export const timesOf = ({ since, until }: TimeSpan) => ({
  since: isoTime(since),
  until: isoTime(until),
})

/** Returns the URL of the sessions page for a period and filters. A relative period stays relative. */
export function sessionsHref(span: TimeSpan, filters: Record<string, string>): string {
  const times = span.last ? { last: span.last } : timesOf(span)
  return hrefOf({ page: 'sessions', query: new URLSearchParams({ ...times, ...filters }) })
}

/** Returns the parameters of counts by host and hand-off. */
export const handOffParameters = (span: TimeSpan): URLSearchParams =>
  new URLSearchParams({ ...timesOf(span), group_by: 'page_host,handed_off', top: '100' })
