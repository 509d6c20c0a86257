import { randomBytes } from 'node:crypto'
import { afterAll, expect, test } from 'vitest'
import { toApiError } from '../../../infra/http/error-response.ts'
import { createPool } from '../../../infra/postgres/pool.ts'
import { createGateLimits } from '../../../services/gate/limits.ts'
import { createTestDatabase } from '../../support/postgres.ts'

const database = await createTestDatabase()
const other = createPool({ url: database.url, max: 4 })
/** Limits of two processes. */
const processes = [createGateLimits(database.pool), createGateLimits(other)] as const
afterAll(async () => {
  await other.end()
  await database.drop()
})

type Key = [string, string]
const freshKey = (): Key => [randomBytes(6).toString('hex'), randomBytes(6).toString('hex')]

/** Sends `count` requests at once and returns the Retry-After seconds of those over the limit. */
async function waitsOf(key: Key, count: number, limit: 'verify' | 'approve' = 'verify') {
  const taken = Array.from({ length: count }, (_, i) =>
    processes[i % 2 === 0 ? 0 : 1].enforce(limit, ...key),
  )
  const refused = (await Promise.allSettled(taken)).filter(({ status }) => status === 'rejected')
  return refused.map((result) => {
    const error = toApiError('reason' in result && result.reason)
    expect([error.code, error.status]).toEqual(['gate.rate_limit', 429])
    return Number(error.headers['retry-after'])
  })
}

/** Simulates the passing of seconds. */
const pass = (seconds: number) =>
  database.pool.query('update tidegate.gate_limits set expire = expire - $1', [seconds * 1000])

test('two processes together admit exactly the limit', async () => {
  const waits = await waitsOf(freshKey(), 67)
  expect(waits).toHaveLength(7)
  for (const wait of waits) expect(wait > 50 && wait <= 60).toBe(true)
})

test('each limit and each part of its key has its own count', async () => {
  const key = freshKey()
  await waitsOf(key, 60)
  expect(await waitsOf([key[0], 'other'], 1)).toEqual([])
  expect(await waitsOf(['other', key[1]], 1)).toEqual([])
  expect(await waitsOf(key, 1, 'approve')).toEqual([])
  expect(await waitsOf(key, 1)).toHaveLength(1)
})

test('a window ends on time, even if requests over the limit continue', async () => {
  const key = freshKey()
  await waitsOf(key, 60)
  await pass(40)
  const [wait = 0] = await waitsOf(key, 1)
  expect(wait).toBeLessThanOrEqual(20)
  await pass(20)
  expect(await waitsOf(key, 60)).toEqual([])
  expect(await waitsOf(key, 1)).toHaveLength(1)
})

test('the approve window exceeds a session by a minute, and Retry-After never exceeds a session', async () => {
  const key = freshKey()
  expect(await waitsOf(key, 4, 'approve')).toEqual([900])
  await pass(900)
  expect(await waitsOf(key, 1, 'approve')).toHaveLength(1)
  await pass(60)
  expect(await waitsOf(key, 1, 'approve')).toEqual([])
})

test('keys are stored as hashes, because some are tokens', async () => {
  const key = freshKey()
  await waitsOf(key, 1)
  const { rows } = await database.pool.query<{ key: string }>(
    'select key from tidegate.gate_limits',
  )
  const stored = rows.map((row) => row.key).join()
  for (const part of key) expect(stored).not.toContain(part)
})

test('without the database, every request fails with 503', async () => {
  const gone = createPool({ url: 'postgres://nobody@127.0.0.1:1/none', max: 1 })
  const refused = await createGateLimits(gone)
    .enforce('poll', 'token')
    .catch((error: unknown) => toApiError(error))
  await gone.end()
  expect(refused).toMatchObject({ code: 'service.unavailable', status: 503 })
})
