import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { SessionFilters } from '../../projections/sessions/filters.ts'
import {
  hasTooManyToSort,
  listSessions,
  type SessionPosition,
} from '../../projections/sessions/list-sessions.ts'
import { amount } from '../support/long.ts'
import {
  common,
  facts,
  filters,
  keyId,
  type Model,
  matches,
  seed,
  useModels,
  visitorId,
} from './session-model.ts'

const models = await useModels()
let run = 0

const change = fc.oneof(
  fc.record({ kind: fc.constant('insert' as const), time: fc.integer({ min: 1, max: 8 }), facts }),
  fc.record({ kind: fc.constant('move' as const), row: fc.nat(), facts }),
  fc.record({ kind: fc.constant('erase' as const), row: fc.nat() }),
)
type Change = typeof change extends fc.Arbitrary<infer T> ? T : never

const plan = fc.record({
  // Few different times, so that many sessions share one.
  there: fc.array(
    fc.record({
      time: fc.integer({ min: 1, max: 8 }),
      facts,
      user: fc.option(fc.integer({ min: 1, max: 2 })),
    }),
    {
      minLength: 1,
      maxLength: 20,
    },
  ),
  filters,
  sort: fc.constantFrom('evaluated_at' as const, 'risk_score' as const),
  order: fc.constantFrom('asc' as const, 'desc' as const),
  limit: fc.integer({ min: 1, max: 5 }),
  windowSize: fc.integer({ min: 1, max: 6 }),
  changes: fc.array(fc.array(change, { maxLength: 2 }), { maxLength: 6 }),
})

/**
 * Walks all pages, and alters sessions between them. Returns what was seen, and the numbers of sessions that were
 * altered.
 */
async function walk(model: Model, { changes, there, ...list }: Plan) {
  const { filters, limit, sort } = list
  const seen: string[] = []
  const altered = new Set<number>()
  let added = 1000
  let after: SessionPosition | undefined
  for (let page = 0; page < 500; page++) {
    const { rows, hasMore, readTo } = await listSessions(models.database.pool, model.scope, {
      ...list,
      after,
    })
    expect(rows.length).toBeLessThanOrEqual(limit)
    for (const { id } of rows) {
      const session = [...model.sessions.values()].find(({ n }) => model.sessionId(n) === id)
      expect(session && matches(session, filters)).toBe(true)
    }
    seen.push(...rows.map(({ id }) => id))
    if (!hasMore) return { seen, altered }
    const last = rows.at(-1)
    after = readTo ?? (last && { value: last.latest_decision[sort], id: last.id })
    expect(after).toBeDefined()
    for (const change of changes[page] ?? [])
      altered.add(await alter(model, change, { there, added: added++ }))
  }
  throw new Error('the pages do not end')
}

async function alter(
  model: Model,
  change: Change,
  { there, added }: { there: unknown[]; added: number },
): Promise<number> {
  if (change.kind === 'insert') {
    await model.decide(added, change.time, change.facts)
    return added
  }
  const n = change.row % there.length
  if (change.kind === 'erase') await model.erase(n)
  // Like a newer decision, moves the session to the front.
  else if (model.sessions.has(n)) await model.decide(n, added, change.facts)
  return n
}

type Plan = typeof plan extends fc.Arbitrary<infer T> ? T : never

async function checked(plan: Plan): Promise<void> {
  const model = models.model(run++)
  await model.begin(plan.there)
  const before = [...model.sessions.values()].filter((session) => matches(session, plan.filters))
  const { seen, altered } = await walk(model, plan)
  const { sort, order } = plan
  // In other orders, a new decision can move a session that was seen to a later page.
  if (sort === 'evaluated_at' && order === 'desc') expect(new Set(seen).size).toBe(seen.length)
  const ascending = before
    .filter(({ n }) => !altered.has(n))
    .map(({ n, time, score }) => ({
      value: sort === 'risk_score' ? score : time,
      id: model.sessionId(n),
    }))
    .sort((a, b) => a.value - b.value || (a.id < b.id ? -1 : 1))
    .map(({ id }) => id)
  const throughout: string[] = order === 'asc' ? ascending : ascending.toReversed()
  expect(seen.filter((id) => throughout.includes(id))).toEqual(throughout)
}

test(`pages list each unchanged session once, in order, while others are added, moved or erased (seed ${seed})`, async () => {
  await fc.assert(fc.asyncProperty(plan, checked), {
    seed,
    numRuns: amount({ few: 40, many: 400 }),
  })
}, 120_000)

test('a page that ends with its window has the position of its end, and the last page has null', async () => {
  const model = models.model('window')
  for (let n = 0; n < 7; n++)
    await model.decide(n, n + 1, { ...common, country: n === 0 ? 'DE' : 'FR' })
  const read = (after?: SessionPosition) =>
    listSessions(models.database.pool, model.scope, {
      limit: 2,
      windowSize: 3,
      filters: { country: ['DE'] },
      after,
    })
  const first = await read()
  expect(first).toMatchObject({
    rows: [],
    hasMore: true,
    readTo: { value: 5, id: model.sessionId(4) },
  })
  const second = await read(first.readTo ?? undefined)
  expect(second).toMatchObject({ rows: [], hasMore: true, readTo: { value: 2 } })
  const third = await read(second.readTo ?? undefined)
  expect(third).toMatchObject({ rows: [{ id: model.sessionId(0) }], hasMore: false, readTo: null })
})

test('a page of a verdict, visitor or user finds all sessions, regardless of the window', async () => {
  const model = models.model('exact')
  for (let n = 0; n < 9; n++)
    await model.decide(n, n + 1, {
      ...common,
      verdict: n === 0 ? 'bot' : 'human',
      visitor: n === 1 ? 1 : 2,
    })
  await model.attach(1, 1)
  const verdict = ['human' as const, 'bot' as const]
  for (const [n, filters] of [
    [0, { verdict: ['bot' as const] }],
    [0, { verdict: ['bot' as const, 'inconclusive' as const] }],
    [1, { visitor_id: [visitorId(1)] }],
    [1, { visitor_id: [visitorId(1)], verdict }],
    [1, { client_user_id: ['user 1'] }],
    [1, { client_user_id: ['user 1'], verdict }],
  ] satisfies [number, SessionFilters][]) {
    const page = { limit: 2, windowSize: 2, filters }
    const found = await listSessions(models.database.pool, model.scope, page)
    expect(found).toMatchObject({ rows: [{ id: model.sessionId(n) }], hasMore: false })
  }
})

test('a session whose facts have expired matches neither a filter on facts nor its negation', async () => {
  const model = models.model('ended')
  for (let n = 0; n < 4; n++)
    await model.decide(n, n + 1, {
      ...common,
      handedOff: n % 2 === 1,
      country: n === 2 ? 'DE' : null,
      key: 1,
    })
  await model.end(3, 0)
  for (const [filters, ns] of [
    [{ handed_off: [false] }, [2]],
    [{ handed_off: [true] }, [3]],
    [{ handed_off: [false, true] }, [3, 2]],
    [{ not: { country: ['DE'] } }, [3]],
    [{ without: ['country'] }, [3]],
    [{ not: { without: ['country'] } }, [2]],
    // Key ids are kept.
    [{ not: { key_id: [keyId(2)] } }, [3, 2, 1, 0]],
  ] satisfies [SessionFilters, number[]][]) {
    const { rows } = await listSessions(models.database.pool, model.scope, { limit: 10, filters })
    expect(rows.map(({ id }) => id)).toEqual(ns.map((n) => model.sessionId(n)))
  }
})

test('a period with too many sessions to sort is recognized, except for the sessions of a visitor', async () => {
  const model = models.model('sorted')
  for (let n = 0; n < 4; n++) await model.decide(n, n + 1, { ...common, visitor: 1 })
  const isTooLarge = (filters: SessionFilters, max: number) =>
    hasTooManyToSort(models.database.pool, model.scope, filters, max)
  expect(await isTooLarge({}, 4)).toBe(false)
  expect(await isTooLarge({ country: ['DE'] }, 3)).toBe(true)
  expect(await isTooLarge({ since: 2 }, 3)).toBe(false)
  expect(await isTooLarge({ visitor_id: [visitorId(1)] }, 3)).toBe(false)
})
