import type { SessionAggregates } from '../../../readback/schemas/aggregates.ts'
import { hrefOf } from '../shared/address.ts'
import { type TimeSpan, timesOf } from '../shared/span.ts'

/** Returns the URL of the sessions page for a period and filters. A relative period stays relative. */
export function sessionsHref(span: TimeSpan, filters: Record<string, string>): string {
  const times = span.last ? { last: span.last } : timesOf(span)
  return hrefOf({ page: 'sessions', query: new URLSearchParams({ ...times, ...filters }) })
}

/** Returns the part of a period that was counted, which starts later if there were too many sessions. */
export const countedSpan = (span: TimeSpan, { is_complete, since }: SessionAggregates): TimeSpan =>
  is_complete ? span : { ...span, since: Date.parse(since), last: undefined }

/** Returns the parameters of counts without visitors and users, which take longest. */
export const groupingBy = (group_by: string, top: string) => ({ group_by, top, distinct: 'false' })
