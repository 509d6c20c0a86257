import pino from 'pino'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createKeyUsage, lastUsedAt } from '../../../infra/access/key-usage.ts'
import { eventually } from '../../support/eventually.ts'
import { createTestDatabase, type TestDatabase } from '../../support/postgres.ts'

const start = 1_800_000_000_000
const logger = pino({ level: 'silent' })

let database: TestDatabase
let now: number
beforeEach(async () => {
  now = start
  database = await createTestDatabase()
})
afterEach(() => database.drop())

const usage = (lingerMs = 10_000_000) =>
  createKeyUsage({ pool: database.pool, clock: () => now, logger, lingerMs })
const stored = async () => Object.fromEntries(await lastUsedAt(database.pool, ['a', 'b', 'c']))

test('what is noted is written soon, and no key is written twice in a minute', async () => {
  const keys = usage(10)
  keys.recordUse('a')
  await eventually(async () => expect(await stored()).toEqual({ a: start }))
  now += 59_999
  keys.recordUse('a')
  keys.recordUse('b')
  await keys.flush()
  expect(await stored()).toEqual({ a: start, b: now })
  now += 1
  keys.recordUse('a')
  await keys.flush()
  expect(await stored()).toEqual({ a: now, b: now - 1 })
  await keys.close()
})

test('the later use counts, whoever writes last', async () => {
  const [early, late] = [usage(), usage()]
  early.recordUse('a')
  now += 5000
  late.recordUse('a')
  await late.flush()
  await early.flush()
  expect(await stored()).toEqual({ a: start + 5000 })
})

test('many processes write the same keys at once without waiting for each other in a circle', async () => {
  const keys = Array.from({ length: 300 }, (_, i) => `key_${i}`)
  const writers = Array.from({ length: 8 }, () => usage())
  for (let round = 0; round < 5; round++) {
    now += 60_000
    writers.forEach((writer, i) => {
      for (const key of i % 2 ? keys : keys.toReversed()) writer.recordUse(key)
    })
    await Promise.all(writers.map((writer) => writer.flush()))
  }
  const written = await lastUsedAt(database.pool, keys)
  expect(new Set(written.values())).toEqual(new Set([now]))
  expect(written.size).toBe(300)
})

test('what could not be written is kept, the latest of each key, and nobody hears of it', async () => {
  const keys = usage()
  await database.pool.query('alter table tidegate.api_key_usage rename to away')
  keys.recordUse('a')
  await keys.flush()
  now += 60_000
  keys.recordUse('a')
  keys.recordUse('b')
  await keys.flush()
  await database.pool.query('alter table tidegate.away rename to api_key_usage')
  await keys.close()
  expect(await stored()).toEqual({ a: now, b: now })
})

test('closing writes what is noted, and what is noted afterwards is forgotten', async () => {
  const keys = usage()
  keys.recordUse('a')
  await keys.close()
  keys.recordUse('b')
  await keys.flush()
  expect(await stored()).toEqual({ a: start })
})
