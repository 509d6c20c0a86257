import { afterAll, beforeAll, expect, test } from 'vitest'
import { createReadShares } from '../../../infra/access/read-shares.ts'
import { expectError } from './contract.ts'
import { id, type Readback, startReadback } from './support.ts'

let readback: Readback
let now = 1_800_000_000_000
let statements = 0

beforeAll(async () => {
  const shares = createReadShares({ clock: () => now, connections: 2 })
  readback = await startReadback({ shares, statementTimeoutMs: 100 })
  await readback.score({ session_id: id('sid', 1) })
  readback.readPool.on('acquire', () => statements++)
})
afterAll(() => readback.stop())

test('a query that timed out is refused for 30 seconds without asking Postgres', async () => {
  const url = '/v1/sessions?limit=5'
  const get = (changes: { url?: string; key?: string } = {}) => readback.send({ url, ...changes })
  const blocker = await readback.pool.connect()
  await blocker.query('begin; lock table read.sessions in access exclusive mode')
  const timedOut = await get()
  await blocker.query('rollback')
  blocker.release()
  expectError(timedOut, 'service.unavailable')
  expect([timedOut.status, timedOut.headers['retry-after'], statements]).toEqual([503, '30', 1])

  now += 10_000
  const refused = await get()
  expect([refused.status, refused.headers['retry-after'], statements]).toEqual([503, '20', 1])

  // Another query, another environment and another organization are not affected.
  const others = [
    await get({ url: '/v1/sessions?limit=6' }),
    await get({ key: readback.key({ environment: 'test' }) }),
    await get({ key: readback.key({ organizationId: id('org', 2) }) }),
  ]
  expect(others.map(({ status }) => status)).toEqual([200, 200, 200])

  now += 20_000
  expect((await get()).status).toBe(200)
})
