import fc from 'fast-check'
import { expect } from 'vitest'
import { countSessions } from '../../projections/sessions/aggregates.ts'
import {
  type GroupField,
  groupFields,
  type Interval,
  intervals,
} from '../../projections/sessions/count-groups.ts'
import { hourMs } from '../../projections/sessions/hours.ts'
import { rollUpOnce } from '../../projections/sessions/roll-up.ts'
import type { Verdict } from '../../schemas/events.ts'
import type { TestDatabase } from '../support/postgres.ts'
import {
  asksFacts,
  filters,
  type Model,
  type ModelSession,
  matches,
  matchesLasting,
  valuesOf,
} from './session-model.ts'

// Four hours, at their beginning, in them, and at their end.
export const time = fc
  .tuple(fc.integer({ min: 1, max: 4 }), fc.constantFrom(0, 1, 61_000, hourMs - 1))
  .map(([hour, within]) => hour * hourMs + within)
/** All of them are over. */
export const end = 6 * hourMs

/** A query of counts. */
export const query = fc.record({
  // Half of them of times and verdicts only, which roll-ups answer.
  filters: fc.oneof(
    fc.record({ since: time, until: time }, { requiredKeys: [] }),
    fc.record({ verdict: fc.constant<Verdict[]>(['bot', 'human']) }),
    filters.map(({ since: _, until: __, ...others }) => others),
  ),
  interval: fc.constantFrom<Interval>('none', 'minute', 'hour', 'day'),
  groupBy: fc.uniqueArray(fc.constantFrom(...groupFields), { maxLength: 2 }),
})
export type Query = typeof query extends fc.Arbitrary<infer T> ? T : never

/** The groups that a session counts for. */
function groupsOf(session: ModelSession, field: GroupField): (string | null)[] {
  if (field === 'handed_off') return [String(session.handedOff)]
  // Filters take these in other forms, too.
  if (field === 'browser' || field === 'os') return [session[field]]
  const values = field === 'attribution' ? session.labels : valuesOf[field](session)
  return values.length > 0 ? values.map(String) : [null]
}
const lasting: GroupField[] = ['verdict', 'key_id', 'mark']

/** The counts of the model, without SQL. */
export function expected(model: Model, { filters, interval, groupBy }: Query) {
  const asks = asksFacts(filters) || groupBy.some((field) => !lasting.includes(field))
  const length = intervals[interval]
  const counts = new Map<string, number>()
  const found: ModelSession[] = []
  let ended = 0
  for (const session of model.sessions.values()) {
    const at = length === null ? null : session.time - (session.time % length)
    const add = (kind: string, ...values: (string | null)[]) => {
      const name = JSON.stringify([at, kind, values])
      counts.set(name, (counts.get(name) ?? 0) + 1)
    }
    if (asks && session.isEnded) {
      if (!matchesLasting(session, filters)) continue
      ended++
      add('ended')
    } else if (matches(session, filters)) {
      found.push(session)
      const [one = [], two] = groupBy.map((field) => groupsOf(session, field))
      if (groupBy.length === 0) add('value')
      else if (!two) for (const value of one) add('value', value)
      else for (const value of one) for (const other of two) add('value', value, other)
    }
  }
  const visitors = new Set(found.flatMap(({ visitor }) => visitor ?? [])).size
  const users = new Set(found.flatMap(({ user }) => user ?? [])).size
  return {
    sessions: found.length,
    ended,
    distinct: { visitors, users, reason: null },
    groups: sorted([...counts]),
  }
}

const sorted = (entries: [string, number][]) => entries.toSorted(([a], [b]) => (a < b ? -1 : 1))

/** The counts of Postgres, in the same form. */
export async function counted(
  { pool }: TestDatabase,
  model: Model,
  { usesHours, filters, ...query }: Query & { usesHours: boolean },
) {
  const counts = await countSessions(pool, model.scope, {
    ...query,
    top: 100,
    usesHours,
    filters: { since: 0, until: end, ...filters },
  })
  expect(counts.isPart).toBe(false)
  const groups = counts.groups.map(({ at, kind, values, sessions }): [string, number] => [
    JSON.stringify([at, kind, values]),
    sessions,
  ])
  const { sessions, ended, distinct } = counts
  return { sessions, ended, distinct, groups: sorted(groups) }
}

export async function rollUp({ pool }: TestDatabase): Promise<void> {
  while (await rollUpOnce(pool, end));
}
