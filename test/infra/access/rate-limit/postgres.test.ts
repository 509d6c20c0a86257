import { randomInt } from 'node:crypto'
import fc from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import {
  createRateLimiter,
  partsPerUnit,
  type RateLimitRequest,
  type Report,
} from '../../../../infra/access/rate-limit/limiter.ts'
import {
  createPostgresBucketStore,
  rateLimitPoolOptions,
} from '../../../../infra/access/rate-limit/postgres-store.ts'
import { toApiError } from '../../../../infra/http/error-response.ts'
import { createPool } from '../../../../infra/postgres/pool.ts'
import { createTestDatabase } from '../../../support/postgres.ts'
import { startTcpProxy } from '../../../support/tcp-proxy.ts'
import { charged, type Row } from './support.ts'

const seed = Number(process.env.SEED ?? randomInt(2 ** 31))
console.log(`rate limiter in Postgres: SEED=${seed}`)

const database = await createTestDatabase()
afterAll(() => database.drop())

/** Creates a limiter with its own connections, as in another process. */
function createProcess(url = database.url, timeouts = {}) {
  const pool = createPool({ url, ...rateLimitPoolOptions, ...timeouts })
  const limiter = createRateLimiter({ store: createPostgresBucketStore(pool) })
  return {
    limiter,
    async close() {
      await limiter.close()
      await pool.end()
    },
  }
}

const requestOf = (name: string, limit: number): RateLimitRequest => ({
  owner: `org_${name}`,
  bucket: 'publishable',
  limit,
  cost: 1,
})

async function rowOf(bucketId: string): Promise<Row | undefined> {
  const { rows } = await database.pool.query<Row>(
    'select parts::float8, at::float8 from tidegate.rate_limits where bucket = $1',
    [bucketId],
  )
  return rows[0]
}

const amounts = fc.integer({ min: 0, max: 700 }).map((units) => units * partsPerUnit)
const charges = fc.record({
  limit: fc.constantFrom(1, 99, 100, 600, 100_000),
  charge: fc.oneof(
    amounts,
    fc.integer({ min: -10, max: 10 }).map((units) => units * partsPerUnit),
  ),
})
// Names up to four buckets, in any order, each at most once.
const statement = fc
  .tuple(fc.shuffledSubarray(['a', 'b', 'c', 'd'], { minLength: 1 }), fc.infiniteStream(charges))
  .map(([names, drawn]) => names.map((name) => ({ name, ...drawn.next().value })))

test('the statement charges like the model', async () => {
  const store = createPostgresBucketStore(database.pool)
  let buckets = 0
  await fc.assert(
    fc.asyncProperty(fc.array(statement, { minLength: 1, maxLength: 8 }), async (statements) => {
      const run = `model ${buckets++}`
      const rows = new Map<string, Row>()
      for (const drawn of statements) {
        const reports: Report[] = drawn.map(({ name, ...rest }) => ({
          bucketId: `${run} ${name}`,
          ...rest,
        }))
        const left = await store.charge(reports)
        for (const [i, report] of reports.entries()) {
          const stored = await rowOf(report.bucketId)
          const expected = charged(rows.get(report.bucketId), report, stored?.at ?? 0)
          expect(stored).toEqual(expected)
          expect(left[i]).toBe(expected.parts)
          rows.set(report.bucketId, expected)
        }
      }
    }),
    { seed, numRuns: 50 },
  )
})

test('statements with the same buckets in different orders do not deadlock', async () => {
  const store = createPostgresBucketStore(database.pool)
  const reports = Array.from({ length: 200 }, (_, i) => ({
    bucketId: `ordered ${i}`,
    limit: 600,
    charge: partsPerUnit,
  }))
  const rounds = 100
  await Promise.all(
    Array.from({ length: rounds }, (_, i) =>
      store.charge(i % 2 === 0 ? reports : reports.toReversed()),
    ),
  )
  const left = await store.charge(reports.map((report) => ({ ...report, charge: 0 })))
  for (const parts of left) expect(parts / partsPerUnit).toBeLessThan(600 - rounds + 60)
})

test('processes that create a bucket at the same time share it', async () => {
  const request = requestOf('new', 8)
  const processes = Array.from({ length: 5 }, () => createProcess())
  const taken = await Promise.all(
    Array.from({ length: 20 }, (_, i) => processes[i % 5]?.limiter.consume(request)),
  )
  expect(taken.filter((result) => result?.admitted)).toHaveLength(8)
  await Promise.all(processes.map((process) => process.close()))
})

test('returns 503 in time on a connection that hangs, until it recovers', async () => {
  const request = { ...requestOf('silent', 100), cost: 5 }
  const started = performance.now()
  const proxy = await startTcpProxy(database.url)
  const { limiter, close } = createProcess(proxy.url, { queryTimeoutMs: 250 })
  await limiter.consume(request)
  proxy.freeze()
  const failures = await Promise.all(
    Array.from({ length: 20 }, async () => limiter.consume(request)).map((result) =>
      result.then(() => undefined, toApiError),
    ),
  )
  expect(failures).toMatchObject(Array(20).fill({ status: 503 }))
  expect(performance.now() - started).toBeLessThan(2000)
  expect((await limiter.consume(request)).admitted).toBe(true)
  await close()
  await proxy.close()
  const { parts = 0 } = (await rowOf('org_silent:publishable')) ?? {}
  // Statements whose result was lost are not repeated.
  const gained = ((performance.now() - started) * 100) / 60_000
  expect(parts / partsPerUnit).toBeGreaterThanOrEqual(90)
  expect(parts / partsPerUnit).toBeLessThanOrEqual(90 + Math.ceil(gained) + 1)
})
