import type { GroupField } from '../../../../projections/sessions/count-groups.ts'
import type { SessionAggregates } from '../../../readback/schemas/aggregates.ts'
import type { TimeSpan } from '../shared/span.ts'

const day = 86_400_000

/** As many whole days earlier as the span needs, so that both begin and end at the same time of day. */
export function earlier({ since, until }: TimeSpan): TimeSpan {
  const shift = Math.ceil((until - since) / day) * day
  return { since: since - shift, until: until - shift, last: undefined }
}

/** The last day of a longer span. */
export const lastDay = (span: TimeSpan): TimeSpan =>
  span.until - span.since <= day
    ? span
    : { since: span.until - day, until: span.until, last: undefined }

export interface Rise {
  value: string
  sessions: number
  /** The day before; at most so many where the value was not among those counted by themselves. */
  before: number
}

const least = 50
const times = 3

/** Values with at least 50 sessions and three times those of the same hours of the day before, the largest first. */
export function risesOf(
  field: GroupField,
  now: SessionAggregates,
  before: SessionAggregates,
): Rise[] {
  if (!now.is_complete || !before.is_complete) return []
  const known = new Map(before.groups.map(({ values, sessions }) => [values[field], sessions]))
  const counted = before.groups
    .filter(({ kind }) => kind === 'value')
    .map(({ sessions }) => sessions)
  const unknown = before.groups.some(({ kind }) => kind === 'other') ? Math.min(...counted) : 0
  return now.groups.flatMap(({ values, sessions }) => {
    const value = values[field]
    const then = known.get(value) ?? unknown
    return value && sessions >= least && sessions >= times * then
      ? [{ value, sessions, before: then }]
      : []
  })
}

export interface HandOffs {
  host: string
  sessions: number
  missing: number
}

/** Of counts by page and hand-off: pages by how many of their sessions were not handed off. */
export function handOffsOf({ groups }: Pick<SessionAggregates, 'groups'>): HandOffs[] {
  const hosts = new Map<string, HandOffs>()
  for (const { values, sessions } of groups) {
    const { page_host: host, handed_off: came } = values
    if (!host) continue
    const sum = hosts.get(host) ?? { host, sessions: 0, missing: 0 }
    const missing = sum.missing + (came === 'false' ? sessions : 0)
    hosts.set(host, { host, sessions: sum.sessions + sessions, missing })
  }
  return [...hosts.values()]
    .filter(({ missing }) => missing > 0)
    .sort((a, b) => b.missing - a.missing)
}
