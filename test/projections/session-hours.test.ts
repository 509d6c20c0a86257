import { expect, test } from 'vitest'
import { transaction, tryLock } from '../../infra/postgres/pool.ts'
import { hourMs } from '../../projections/sessions/hours.ts'
import { rollUpLock, rollUpOnce, runRollUp } from '../../projections/sessions/roll-up.ts'
import { eventually } from '../support/eventually.ts'
import { silent } from '../support/projections.ts'
import { counted, end, expected, type Query, rollUp } from './session-counts.ts'
import { common, type Model, useModels } from './session-model.ts'

const byCountry: Query = { filters: {}, interval: 'hour', groupBy: ['country'] }
const models = useModels()

async function countsAreRight(model: Model): Promise<void> {
  for (const usesHours of [true, false])
    expect(await counted(models.database, model, { ...byCountry, usesHours })).toEqual(
      expected(model, byCountry),
    )
}

test('whatever changes a session deletes the roll-ups of its hours, and of no other', async () => {
  const model = models.model('deleted')
  const hours = async () => {
    const { rows } = await models.database.pool.query<{ hour: number }>(
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
    await rollUp(models.database)
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
    while (isWriting) await rollUpOnce(models.database.pool, end)
  })()
  await Promise.all(writers)
  isWriting = false
  await rolling
  await rollUp(models.database)
  await countsAreRight(model)
}, 60_000)

test('an hour is counted when those who were changing its sessions have committed', async () => {
  const model = models.model('waits')
  await model.decide(0, hourMs, { ...common, country: 'FR' })
  let rolling: Promise<unknown> | undefined
  await model.decide(1, hourMs + 1, { ...common, country: 'DE' }, async () => {
    let isOver = false
    rolling = rollUpOnce(models.database.pool, end).finally(() => {
      isOver = true
    })
    await eventually(async () => expect(isOver || (await waitForLocks())).toBe(true))
  })
  await rolling
  await countsAreRight(model)
})

async function waitForLocks(): Promise<boolean> {
  const { rows } = await models.database.pool.query(
    `select from pg_locks l join pg_database d on d.oid = l.database
     where d.datname = current_database() and l.locktype = 'advisory' and not l.granted`,
  )
  return rows.length > 0
}

test('an hour is counted by each environment', async () => {
  const live = models.model('environments')
  const others = models.model('environments', 'test')
  for (let n = 0; n < 3; n++) await live.decide(n, hourMs + n, { ...common, country: 'FR' })
  for (let n = 0; n < 2; n++)
    await others.decide(n, hourMs + n, { ...common, country: n === 0 ? 'FR' : 'DE' })
  await rollUp(models.database)
  for (const model of [live, others]) await countsAreRight(model)
  // What changes a session of one leaves the other's hour.
  await others.erase(0)
  for (const model of [live, others]) await countsAreRight(model)
})

test('hours are counted by another process when the one that was at it has died', async () => {
  const model = models.model('died')
  await model.decide(0, hourMs, common)
  const { pool } = models.database
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
  try {
    await eventually(async () =>
      expect((await pool.query(rolled, [model.scope.organizationId])).rows).toHaveLength(1),
    )
  } finally {
    await rolling.stop()
  }
})
