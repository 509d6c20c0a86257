import fc from 'fast-check'
import { expect, test } from 'vitest'
import { countSessions } from '../../projections/sessions/aggregates.ts'
import { intervals } from '../../projections/sessions/count-groups.ts'
import { hourMs } from '../../projections/sessions/hours.ts'
import { amount } from '../support/long.ts'
import { counted, end, expected, query, rollUp, time } from './session-counts.ts'
import { common, facts, type Model, seed, useModels } from './session-model.ts'

const models = useModels()
let run = 0

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

test(`counts are those of the sessions, read or rolled up, before and after any change (seed ${seed})`, async () => {
  const property = fc.asyncProperty(plan, async ({ there, changes, queries }) => {
    const model = models.model(run++)
    await model.begin(there)
    await rollUp(models.database)
    for (const change of [undefined, ...changes]) {
      if (change) await alter(model, change)
      for (const query of queries)
        for (const usesHours of [true, false])
          expect(await counted(models.database, model, { ...query, usesHours })).toEqual(
            expected(model, query),
          )
    }
  })
  await fc.assert(property, { seed, numRuns: amount({ few: 15, many: 100 }) })
}, 240_000)

test('the largest groups are counted by themselves and the others together', async () => {
  const model = models.model('top')
  for (let n = 0; n < 6; n++)
    await model.decide(n, hourMs + n, { ...common, country: n < 3 ? 'FR' : n < 5 ? 'DE' : null })
  const count = (top: number, { since = 0, maxRows = 100 } = {}) =>
    countSessions(models.database.pool, model.scope, {
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
  // Of too many sessions the newest whole hours are counted, and the answer says so.
  for (let n = 6; n < 9; n++) await model.decide(n, 3 * hourMs + n, { ...common, country: 'FR' })
  const part = await count(1, { maxRows: 4 })
  expect(part).toMatchObject({ isPart: true, since: 2 * hourMs, sessions: 3 })
  const long = await count(1, { since: end - 8 * intervals.day })
  expect(long.distinct).toEqual({ visitors: null, users: null, reason: 'over_seven_days' })
})
