import { afterAll, expect, test } from 'vitest'
import { createReadLimiter } from '../../../infra/access/read-limiter.ts'
import { createApp } from '../../../infra/http/app.ts'
import { createPool } from '../../../infra/postgres/pool.ts'
import { readbackRoutes } from '../../../services/readback/routes.ts'
import { createScoreExplainer } from '../../../services/scoring/explain/score.ts'
import { publicUrl, type Send, sendTo } from '../../support/send.ts'
import { useReadback } from './support.ts'

let now = 1_800_000_000_000
let statements = 0

const readback = await useReadback()
const key = (await readback.organization()).key
const pool = createPool({ url: readback.url, max: 2, statementTimeoutMs: 100 })
pool.on('acquire', () => statements++)
const app = await createApp({ ...readback.base, publicUrl })
readbackRoutes(app, {
  ...readback.core,
  auth: readback.auth,
  pool,
  readLimiter: createReadLimiter({ clock: () => now, connections: 2 }),
  explainMatch: async () => null,
  explainScore: createScoreExplainer(pool),
  roleOf: () => undefined,
  findDocuments: async () => [],
})
afterAll(async () => {
  await app.close()
  await pool.end()
})

test('a query that timed out gets 503 for 30 seconds, without another statement', async () => {
  const url = '/v1/sessions?limit=5'
  const get = (changes: Partial<Send> = {}) => sendTo(app, { url, key, ...changes })
  const blocker = await readback.pool.connect()
  await blocker.query('begin; lock table read.sessions in access exclusive mode')
  const timedOut = await get()
  await blocker.query('rollback')
  blocker.release()
  expect([timedOut.status, timedOut.headers['retry-after'], statements]).toEqual([503, '30', 1])

  now += 10_000
  const refused = await get()
  expect([refused.status, refused.headers['retry-after'], statements]).toEqual([503, '20', 1])

  // Another query, another environment and another organization are not affected.
  const others = [
    await get({ url: '/v1/sessions?limit=6' }),
    await get({ key: readback.testKey }),
    await get({ key: (await readback.organization()).key }),
  ]
  expect(others.map(({ status }) => status)).toEqual([200, 200, 200])

  now += 20_000
  expect((await get()).status).toBe(200)
})
