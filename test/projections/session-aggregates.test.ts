import fc from 'fast-check'
import { expect, onTestFinished, test } from 'vitest'
import { transaction, tryLock } from '../../infra/postgres/pool.ts'
import { countSessions } from '../../projections/sessions/aggregates.ts'
import {
  type GroupField,
  groupFields,
  type Interval,
  intervals,
} from '../../projections/sessions/count-groups.ts'
import { hourMs } from '../../projections/sessions/hours.ts'
import { rollUpLock, rollUpOnce, runRollUp } from '../../projections/sessions/roll-up.ts'
import type { Verdict } from '../../schemas/events.ts'
import { eventually } from '../support/eventually.ts'
import { amount } from '../support/long.ts'
import { silent } from '../support/projections.ts'
import {
  common,
  facts,
  filters,
  type Model,
  type ModelSession,
  matches,
  matchesLasting,
  needsFacts,
  seed,
  useModels,
  valuesOf,
} from './session-model.ts'

const models = await useModels()
const { pool } = models.database
let run = 0

// Times at the beginning, within and at the end of four hours.
const time = fc
  .tuple(fc.integer({ min: 1, max: 4 }), fc.constantFrom(0, 1, 61_000, hourMs - 1))
  .map(([hour, within]) => hour * hourMs + within)
/** Time after all of these hours. */
const end = 6 * hourMs

const query = fc.record({
  // Many filter only by time or verdict, so that roll-ups are used.
  filters: fc.oneof(
    fc.record({ since: time, until: time }, { requiredKeys: [] }),
    fc.record({ verdict: fc.constant<Verdict[]>(['bot', 'human']) }),
    filters.map(({ since: _, until: __, ...others }) => others),
  ),
  interval: fc.constantFrom<Interval>('none', 'minute', 'hour', 'day'),
  groupBy: fc.uniqueArray(fc.constantFrom(...groupFields), { maxLength: 2 }),
})
type Query = typeof query extends fc.Arbitrary<infer T> ? T : never

/** Returns the groups that count the session. */
function groupsOf(session: ModelSession, field: GroupField): (string | null)[] {
  if (field === 'handed_off') return [String(session.handedOff)]
  // `valuesOf` has these in lower case.
  if (field === 'browser' || field === 'os') return [session[field]]
  const values = field === 'attribution' ? session.labels : valuesOf[field](session)
  return values.length > 0 ? values.map(String) : [null]
}
const lasting: GroupField[] = ['verdict', 'key_id', 'mark']

/** Returns the counts of the model, without SQL. */
function expected(model: Model, { filters, interval, groupBy }: Query) {
  const asks = needsFacts(filters) || groupBy.some((field) => !lasting.includes(field))
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

/** Returns the counts of Postgres in the format of `expected`. */
async function counted(
  model: Model,
  { usesRollUps, filters, ...query }: Query & { usesRollUps: boolean },
) {
  const counts = await countSessions(pool, model.scope, {
    ...query,
    top: 100,
    usesRollUps,
    filters: { since: 0, until: end, ...filters },
  })
  expect(counts.isPartial).toBe(false)
  const groups = counts.groups.map(({ at, kind, values, sessions }): [string, number] => [
    JSON.stringify([at, kind, values]),
    sessions,
  ])
  const { sessions, ended, distinct } = counts
  return { sessions, ended, distinct, groups: sorted(groups) }
}

async function rollUp(): Promise<void> {
  while (await rollUpOnce(pool, end));
}

const decided = fc.record({ time, facts, user: fc.option(fc.integer({ min: 1, max: 2 })) })
const change = fc.oneof(
  fc.record({ kind: fc.constant('decide' as const), row: fc.nat(20), time, facts }),
  fc.record({ kind: fc.constant('erase' as const), row: fc.nat(20) }),
  fc.record({ kind: fc.constant('end' as const), decisions: time, sessions: time }),
)

const plan = fc.record({
  there: fc.array(decided, { minLength: 1, maxLength: 12 }),
  changes: fc.array(change, { maxLength: 4 }),
  queries: fc.array(query, { minLength: 3, maxLength: 6 }),
})
type Plan = typeof plan extends fc.Arbitrary<infer T> ? T : never

async function alter(model: Model, change: Plan['changes'][number]): Promise<void> {
  if (change.kind === 'decide') await model.decide(change.row, change.time, change.facts)
  else if (change.kind === 'erase') await model.erase(change.row)
  else await model.end(change.decisions, change.sessions)
}

test(`counts equal the model, with and without roll-ups, before and after any change (seed ${seed})`, async () => {
  const property = fc.asyncProperty(plan, async ({ there, changes, queries }) => {
    const model = models.model(run++)
    await model.begin(there)
    await rollUp()
    for (const change of [undefined, ...changes]) {
      if (change) await alter(model, change)
      for (const query of queries)
        for (const usesRollUps of [true, false])
          expect(await counted(model, { ...query, usesRollUps })).toEqual(expected(model, query))
    }
  })
  await fc.assert(property, { seed, numRuns: amount({ few: 15, many: 100 }) })
}, 240_000)

test('the largest groups are returned, and the others are merged', async () => {
  const model = models.model('top')
  for (let n = 0; n < 6; n++)
    await model.decide(n, hourMs + n, { ...common, country: n < 3 ? 'FR' : n < 5 ? 'DE' : null })
  const count = (top: number, { since = 0, maxRows = 100 } = {}) =>
    countSessions(pool, model.scope, {
      top,
      interval: 'none',
      groupBy: ['country'],
      maxRows,
      filters: { since, until: end },
    })
  expect((await count(1)).groups).toEqual([
    { at: null, kind: 'value', values: ['FR'], sessions: 3 },
    { at: null, kind: 'other', values: [], sessions: 3 },
  ])
  expect((await count(3)).groups.map(({ values }) => values)).toEqual([['FR'], ['DE'], [null]])
  // With too many sessions, only the newest full hours are counted.
  for (let n = 6; n < 9; n++) await model.decide(n, 3 * hourMs + n, { ...common, country: 'FR' })
  const part = await count(1, { maxRows: 4 })
  expect(part).toMatchObject({ isPartial: true, since: 2 * hourMs, sessions: 3 })
  const long = await count(1, { since: end - 8 * intervals.day })
  expect(long.distinct).toEqual({ visitors: null, users: null, reason: 'over_seven_days' })
})

const byCountry: Query = { filters: {}, interval: 'hour', groupBy: ['country'] }
async function countsAreRight(model: Model): Promise<void> {
  for (const usesRollUps of [true, false])
    expect(await counted(model, { ...byCountry, usesRollUps })).toEqual(expected(model, byCountry))
}

test('every change of a session deletes the roll-ups of its hours, and no others', async () => {
  const model = models.model('deleted')
  const hours = async () => {
    const { rows } = await pool.query<{ hour: number }>(
      `select (hour / ${hourMs})::integer as hour from read.session_hours
       where organization_id = $1 and sessions is not null order by hour`,
      [model.scope.organizationId],
    )
    return rows.map(({ hour }) => hour)
  }
  for (let n = 0; n < 5; n++) await model.decide(n, n * hourMs + 1, common)
  const left: number[][] = []
  for (const change of [
    () => model.decide(1, 2 * hourMs + 2, common),
    () => model.erase(3),
    () => model.end(hourMs, 0),
    () => model.end(hourMs, hourMs),
  ]) {
    await rollUp()
    await change()
    left.push(await hours())
  }
  expect(left).toEqual([
    [0, 3, 4],
    [0, 2, 4],
    [2, 4],
    [2, 4],
  ])
})

test('hours that are rolled up while sessions change are never wrong', async () => {
  const model = models.model('beside')
  const decide = (n: number, round: number) => {
    const at = (1 + ((n + round) % 4)) * hourMs + n
    return model.decide(n, at, { ...common, country: round % 2 ? 'DE' : 'FR' })
  }
  let isWriting = true
  const writers = Array.from({ length: 4 }, async (_, writer) => {
    for (let round = 0; round < 25; round++) await decide(writer * 100 + (round % 3), round)
  })
  const rolling = (async () => {
    while (isWriting) await rollUpOnce(pool, end)
  })()
  await Promise.all(writers)
  isWriting = false
  await rolling
  await rollUp()
  await countsAreRight(model)
}, 60_000)

test('an hour is rolled up after transactions that change its sessions have committed', async () => {
  const model = models.model('waits')
  await model.decide(0, hourMs, { ...common, country: 'FR' })
  let rolling: Promise<unknown> | undefined
  await model.decide(1, hourMs + 1, { ...common, country: 'DE' }, async () => {
    let isOver = false
    rolling = rollUpOnce(pool, end).finally(() => {
      isOver = true
    })
    await eventually(async () => expect(isOver || (await waitForLocks())).toBe(true))
  })
  await rolling
  await countsAreRight(model)
})

async function waitForLocks(): Promise<boolean> {
  const { rows } = await pool.query(
    `select from pg_locks l join pg_database d on d.oid = l.database
     where d.datname = current_database() and l.locktype = 'advisory' and not l.granted`,
  )
  return rows.length > 0
}

test('environments have separate roll-ups', async () => {
  const live = models.model('environments')
  const others = models.model('environments', 'test')
  for (let n = 0; n < 3; n++) await live.decide(n, hourMs + n, { ...common, country: 'FR' })
  for (let n = 0; n < 2; n++)
    await others.decide(n, hourMs + n, { ...common, country: n === 0 ? 'FR' : 'DE' })
  await rollUp()
  for (const model of [live, others]) await countsAreRight(model)
  // A change in one environment keeps the roll-up of the other.
  await others.erase(0)
  for (const model of [live, others]) await countsAreRight(model)
})

test('another process takes over roll-ups when the current one has died', async () => {
  const model = models.model('died')
  await model.decide(0, hourMs, common)
  let looks = 0
  const clock = () => {
    looks++
    return 2 * end
  }
  const rolling = await transaction(pool, async (tx) => {
    expect(await tryLock(tx, rollUpLock)).toBe(true)
    const started = runRollUp({ pool, clock, logger: silent, intervalMs: 5 })
    await eventually(() => expect(looks).toBeGreaterThan(2))
    return started
  })
  const rolled = `select from read.session_hours where organization_id = $1 and sessions is not null`
  onTestFinished(() => rolling.stop())
  await eventually(async () =>
    expect((await pool.query(rolled, [model.scope.organizationId])).rows).toHaveLength(1),
  )
})
