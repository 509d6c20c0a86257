import pino from 'pino'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createKeyUsageBuffer, loadLastUses } from '../../../infra/access/key-usage.ts'
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

const createBuffer = (lingerMs = 10_000_000) =>
  createKeyUsageBuffer({ pool: database.pool, clock: () => now, logger, lingerMs })
const stored = async () => Object.fromEntries(await loadLastUses(database.pool, ['a', 'b', 'c']))

test('writes uses soon, and each key at most once a minute', async () => {
  const buffer = createBuffer(10)
  buffer.recordUse('a')
  await eventually(async () => expect(await stored()).toEqual({ a: start }))
  now += 59_999
  buffer.recordUse('a')
  buffer.recordUse('b')
  await buffer.flush()
  expect(await stored()).toEqual({ a: start, b: now })
  now += 1
  buffer.recordUse('a')
  await buffer.flush()
  expect(await stored()).toEqual({ a: now, b: now - 1 })
  await buffer.close()
})

test('keeps the latest use, whichever process writes last', async () => {
  const [early, late] = [createBuffer(), createBuffer()]
  early.recordUse('a')
  now += 5000
  late.recordUse('a')
  await late.flush()
  await early.flush()
  expect(await stored()).toEqual({ a: start + 5000 })
})

test('processes that write the same keys at the same time do not deadlock', async () => {
  const keys = Array.from({ length: 300 }, (_, i) => `key_${i}`)
  const writers = Array.from({ length: 8 }, () => createBuffer())
  for (let round = 0; round < 5; round++) {
    now += 60_000
    writers.forEach((writer, i) => {
      for (const key of i % 2 ? keys : keys.toReversed()) writer.recordUse(key)
    })
    await Promise.all(writers.map((writer) => writer.flush()))
  }
  const written = await loadLastUses(database.pool, keys)
  expect(new Set(written.values())).toEqual(new Set([now]))
  expect(written.size).toBe(300)
})

test('keeps the latest use of each key after a failed write, without an error', async () => {
  const buffer = createBuffer()
  await database.pool.query('alter table tidegate.api_key_usage rename to away')
  buffer.recordUse('a')
  await buffer.flush()
  now += 60_000
  buffer.recordUse('a')
  buffer.recordUse('b')
  await buffer.flush()
  await database.pool.query('alter table tidegate.away rename to api_key_usage')
  await buffer.close()
  expect(await stored()).toEqual({ a: now, b: now })
})

test('writes pending uses on close, and ignores later ones', async () => {
  const buffer = createBuffer()
  buffer.recordUse('a')
  await buffer.close()
  buffer.recordUse('b')
  await buffer.flush()
  expect(await stored()).toEqual({ a: start })
})
