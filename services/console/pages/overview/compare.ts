import type { GroupField } from '../../../../projections/sessions/count-groups.ts'
import type { SessionAggregates } from '../../../readback/schemas/aggregates.ts'
import type { TimeSpan } from '../shared/span.ts'

const day = 86_400_000

/** Shifts a period back by whole days, just enough not to overlap, so that both cover the same times of day. */
export function previousPeriod({ since, until }: TimeSpan): TimeSpan {
  const shift = Math.ceil((until - since) / day) * day
  return { since: since - shift, until: until - shift, last: undefined }
}

/** Returns the last day of a period, or all of a shorter one. */
export const lastDay = (span: TimeSpan): TimeSpan =>
  span.until - span.since <= day
    ? span
    : { since: span.until - day, until: span.until, last: undefined }

export interface Rise {
  value: string
  sessions: number
  /** Sessions the day before; an upper bound if the value was among "other". */
  before: number
}

const minSessions = 50
const minFactor = 3

/**
 * Returns values with at least 50 sessions and three times as many as in the same hours of the day before, largest
 * first.
 */
export function findRises(
  field: GroupField,
  now: SessionAggregates,
  before: SessionAggregates,
): Rise[] {
  if (!now.is_complete || !before.is_complete) return []
  const countsBefore = new Map(
    before.groups.map(({ values, sessions }) => [values[field], sessions]),
  )
  const separateCounts = before.groups
    .filter(({ kind }) => kind === 'value')
    .map(({ sessions }) => sessions)
  const maxOtherCount = before.groups.some(({ kind }) => kind === 'other')
    ? Math.min(...separateCounts)
    : 0
  return now.groups.flatMap(({ values, sessions }) => {
    const value = values[field]
    const countBefore = countsBefore.get(value) ?? maxOtherCount
    return value && sessions >= minSessions && sessions >= minFactor * countBefore
      ? [{ value, sessions, before: countBefore }]
      : []
  })
}

export interface HandOffs {
  host: string
  sessions: number
  missing: number
}

/** Returns the pages by sessions without a hand-off, largest first, from counts by page and hand-off. */
export function missingHandOffs({ groups }: Pick<SessionAggregates, 'groups'>): HandOffs[] {
  const hosts = new Map<string, HandOffs>()
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
