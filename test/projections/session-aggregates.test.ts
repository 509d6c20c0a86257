import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
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
import { amount } from '../support/long.ts'
import { openProjectionWorld, type ProjectionWorld } from '../support/projections.ts'
import {
  asksFacts,
  createModel,
  facts,
  filters,
  keyId,
  type Model,
  type ModelFacts,
  type ModelSession,
  matches,
  matchesLasting,
} from './session-model.ts'

const seed = Date.now() % 2 ** 31
let world: ProjectionWorld
let run = 0

beforeAll(async () => {
  world = await openProjectionWorld()
})
afterAll(() => world?.close())

// Four hours, at their beginning, in them, and at their end.
const time = fc
  .tuple(fc.integer({ min: 1, max: 4 }), fc.constantFrom(0, 1, 61_000, hourMs - 1))
  .map(([hour, within]) => hour * hourMs + within)
const end = 6 * hourMs

const decided = fc.record({ time, facts, user: fc.option(fc.integer({ min: 1, max: 2 })) })
const change = fc.oneof(
  fc.record({ kind: fc.constant('decide' as const), row: fc.nat(20), time, facts }),
  fc.record({ kind: fc.constant('erase' as const), row: fc.nat(20) }),
  fc.record({ kind: fc.constant('end' as const), decisions: time, sessions: time }),
)

const query = fc.record({
  // Half of them of times and verdicts only, which roll-ups answer.
  filters: fc.oneof(
    fc.record({ since: time, until: time }, { requiredKeys: [] }),
    fc.record({ verdict: fc.constant<Verdict[]>(['bot', 'human']) }),
    filters.map(({ since: _, until: __, ...others }) => others),
  ),
  interval: fc.constantFrom<Interval>('none', 'minute', 'hour', 'day'),
  groupBy: fc.uniqueArray(fc.constantFrom(...groupFields), { maxLength: 2 }),
})
type Query = typeof query extends fc.Arbitrary<infer T> ? T : never

const valuesOf: Record<GroupField, (session: ModelSession) => (string | null)[]> = {
  verdict: ({ verdict }) => [verdict],
  signal: ({ signals }) => (signals.length > 0 ? signals : [null]),
  attribution: ({ labels }) => (labels.length > 0 ? labels : [null]),
  country: ({ country }) => [country],
  asn: ({ asn }) => [asn === null ? null : String(asn)],
  network: ({ network }) => [network],
  page_host: ({ host }) => [host],
  key_id: ({ key }) => [keyId(key)],
  browser: ({ browser }) => [browser],
  os: ({ os }) => [os],
  handed_off: ({ handedOff }) => [String(handedOff)],
  mark: () => ['none'],
}
const lasting: GroupField[] = ['verdict', 'key_id', 'mark']

/** What the model says, without SQL. */
function expected(model: Model, { filters, interval, groupBy }: Query) {
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
      const [one = [], two] = groupBy.map((field) => valuesOf[field](session))
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

async function counted(model: Model, { filters, ...query }: Query, usesHours: boolean) {
  const counts = await countSessions(world.database.pool, model.scope, {
    ...query,
    ...{ top: 100, usesHours, filters: { since: 0, until: end, ...filters } },
  })
  expect(counts.isPart).toBe(false)
  const groups = counts.groups.map(({ at, kind, values, sessions }): [string, number] => [
    JSON.stringify([at, kind, values]),
    sessions,
  ])
  const { sessions, ended, distinct } = counts
  return { sessions, ended, distinct, groups: sorted(groups) }
}

async function rollUp(): Promise<void> {
  while ((await rollUpOnce(world.database.pool, end)) > 0);
}

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

test(`counts are those of the sessions, read or rolled up, before and after any change (seed ${seed})`, async () => {
  const property = fc.asyncProperty(plan, async ({ there, changes, queries }) => {
    const model = createModel(world, `${seed} ${run++}`)
    await model.begin(there)
    await rollUp()
    for (const change of [undefined, ...changes]) {
      if (change) await alter(model, change)
      for (const query of queries)
        for (const usesHours of [true, false])
          expect(await counted(model, query, usesHours)).toEqual(expected(model, query))
    }
  })
  await fc.assert(property, { seed, numRuns: amount({ few: 15, many: 100 }) })
}, 240_000)

test('whatever changes a session deletes the roll-ups of its hours, and of no other', async () => {
  const model = createModel(world, `${seed} deleted`)
  const [common] = fc.sample(facts, { numRuns: 1, seed }) as [ModelFacts]
  const hours = async () => {
    const { rows } = await world.database.pool.query<{ hour: number }>(
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

test('hours that are counted while sessions change are never wrong', async () => {
  const model = createModel(world, `${seed} beside`)
  const [common] = fc.sample(facts, { numRuns: 1, seed }) as [ModelFacts]
  const decide = (n: number, round: number) => {
    const at = (1 + ((n + round) % 4)) * hourMs + n
    return model.decide(n, at, { ...common, country: round % 2 ? 'DE' : 'FR' })
  }
  let isWriting = true
  const writers = Array.from({ length: 4 }, async (_, writer) => {
    for (let round = 0; round < 25; round++) await decide(writer * 100 + (round % 3), round)
  })
  const rolling = (async () => {
    while (isWriting) await rollUpOnce(world.database.pool, end)
  })()
  await Promise.all(writers)
  isWriting = false
  await rolling
  await rollUp()
  const query: Query = { filters: {}, interval: 'hour', groupBy: ['country'] }
  expect(await counted(model, query, true)).toEqual(expected(model, query))
}, 60_000)

test('the largest groups are counted by themselves and the others together', async () => {
  const model = createModel(world, `${seed} top`)
  const [common] = fc.sample(facts, { numRuns: 1, seed }) as [ModelFacts]
  for (let n = 0; n < 6; n++)
    await model.decide(n, hourMs + n, { ...common, country: n < 3 ? 'FR' : n < 5 ? 'DE' : null })
  const count = (top: number, { since = 0, maxRows = 100 } = {}) =>
    countSessions(world.database.pool, model.scope, {
      ...{ top, interval: 'none', groupBy: ['country'], maxRows },
      filters: { since, until: end },
    })
  expect((await count(1)).groups).toEqual([
    { at: null, kind: 'value', values: ['FR'], sessions: 3 },
    { at: null, kind: 'other', values: [], sessions: 3 },
  ])
  expect((await count(3)).groups.map(({ values }) => values)).toEqual([['FR'], ['DE'], [null]])
  // Of too many sessions the newest whole hours are counted, and the answer says so.
  for (let n = 6; n < 9; n++) await model.decide(n, 3 * hourMs + n, { ...common, country: 'FR' })
  const part = await count(1, { maxRows: 4 })
  expect(part).toMatchObject({ isPart: true, since: 2 * hourMs, sessions: 3 })
  const long = await count(1, { since: end - 8 * intervals.day })
  expect(long.distinct).toEqual({ visitors: null, users: null, reason: 'over_seven_days' })
})
