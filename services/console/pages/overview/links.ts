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

/** Returns the parameters of counts without visitors and users, which take longest. */
export const groupingBy = (group_by: string, top: string) => ({ group_by, top, distinct: 'false' })
