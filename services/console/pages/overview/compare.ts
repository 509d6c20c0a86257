import type { GroupField } from '../../../../projections/sessions/count-groups.ts'
import type { SessionAggregates } from '../../../readback/schemas/aggregates.ts'
import type { TimeSpan } from '../shared/span.ts'

const day = 86_400_000

/** Shifts a period back by whole days until it doesn't overlap, so that both cover the same times of day. */
export function previousPeriod({ since, until }: TimeSpan): TimeSpan {
  const shift = Math.ceil((until - since) / day) * day
  return { since: since - shift, until: until - shift, last: undefined }
}

/** Returns the last day of a period, or the entire period if it is shorter. */
export const lastDay = (span: TimeSpan): TimeSpan =>
  span.until - span.since <= day
    ? span
    : { since: span.until - day, until: span.until, last: undefined }

export interface Rise {
  value: string
  sessions: number
  /** Sessions in the same hours of the day before; an upper bound if the value was among "other". */
  previousSessions: number
}

const minSessions = 50
const minFactor = 3

/**
 * Returns values with at least 50 sessions and three times as many as in the same hours of the day before, largest
 * first.
 */
export function findRises(
  field: GroupField,
  current: SessionAggregates,
  previous: SessionAggregates,
): Rise[] {
  if (!current.is_complete || !previous.is_complete) return []
  const previousCounts = new Map(
    previous.groups.map(({ values, sessions }) => [values[field], sessions]),
  )
  const separateCounts = previous.groups
    .filter(({ kind }) => kind === 'value')
    .map(({ sessions }) => sessions)
  const maxOtherCount = previous.groups.some(({ kind }) => kind === 'other')
    ? Math.min(...separateCounts)
    : 0
  return current.groups.flatMap(({ values, sessions }) => {
    const value = values[field]
    const previousSessions = previousCounts.get(value) ?? maxOtherCount
    return value && sessions >= minSessions && sessions >= minFactor * previousSessions
      ? [{ value, sessions, previousSessions }]
      : []
  })
}

export interface MissingHandOffs {
  host: string
  sessions: number
  missing: number
}

/** Returns the hosts with sessions without a hand-off, most first. Takes counts by host and hand-off. */
export function missingHandOffs({ groups }: Pick<SessionAggregates, 'groups'>): MissingHandOffs[] {
  const hosts = new Map<string, MissingHandOffs>()
  for (const { values, sessions } of groups) {
    const { page_host: host, handed_off: handedOff } = values
    if (!host) continue
    const sum = hosts.get(host) ?? { host, sessions: 0, missing: 0 }
    const missing = sum.missing + (handedOff === 'false' ? sessions : 0)
    hosts.set(host, { host, sessions: sum.sessions + sessions, missing })
  }
  return [...hosts.values()]
    .filter(({ missing }) => missing > 0)
    .sort((a, b) => b.missing - a.missing)
}
