import { randomInt } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  type RateLimitRequest,
  type Report,
  unit,
} from '../../../../infra/access/rate-limit/bucket.ts'
import {
  type BucketStore,
  createRateLimiter,
  type RateLimiter,
} from '../../../../infra/access/rate-limit/limiter.ts'
import {
  createPostgresStore,
  rateLimitPoolOptions,
} from '../../../../infra/access/rate-limit/postgres-store.ts'
import { toApiError } from '../../../../infra/http/error-response.ts'
import { createPool } from '../../../../infra/postgres/pool.ts'
import { createRandom } from '../../../../infra/random.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/postgres.ts'
import { startTcpProxy } from '../../../support/tcp-proxy.ts'
import { charged, type Row } from './support/memory-store.ts'
import { createModel } from './support/model.ts'

const seed = Number(process.env.SEED ?? randomInt(2 ** 31))
console.log(`rate limiter in Postgres: SEED=${seed}`)

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())

/** A process with connections of its own. */
function createProcess(url = database.url, timeouts = {}) {
  const pool = createPool({ url, ...rateLimitPoolOptions, ...timeouts })
  const inner = createPostgresStore(pool, { random: createRandom() })
  let roundTrips = 0
  const store: BucketStore = {
    charge(report) {
      roundTrips++
      return inner.charge(report)
    },
  }
  const limiter = createRateLimiter({ store })
  return {
    limiter,
    roundTrips: () => roundTrips,
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
    'select parts::float8, at::float8, reservations from tidegate.rate_limits where bucket = $1',
    [bucketId],
  )
  return rows[0]
}

const amounts = fc.integer({ min: 0, max: 700 }).map((units) => units * unit)
const reports = fc.record({
  node: fc.constantFrom(0, 1, 2),
  limit: fc.constantFrom(1, 99, 100, 600, 100_000),
  charge: fc.oneof(
    amounts,
    fc.integer({ min: -10, max: 10 }).map((units) => units * unit),
  ),
  returned: fc.constantFrom(0, 0, unit, 3 * unit),
  retained: fc.constantFrom(0, 0, unit, 3 * unit),
  reserves: fc.boolean(),
})

test('the statement charges and reserves as the rule written a second time does', async () => {
  const stores = [0, 1, 2].map((index) =>
    createPostgresStore(database.pool, { random: () => Buffer.from([index]) }),
  )
  let buckets = 0
  await fc.assert(
    fc.asyncProperty(fc.array(reports, { minLength: 1, maxLength: 12 }), async (drawn) => {
      const bucketId = `model ${buckets++}`
      let row: Row | undefined
      for (const { node, ...asked } of drawn) {
        const report: Report = { bucketId, ...asked }
        const answer = await stores[node]?.charge(report)
        const stored = await rowOf(bucketId)
        const expected = charged(row, { report, node: `0${node}`, now: stored?.at ?? 0 })
        expect(stored).toEqual(expected.row)
        expect(answer).toEqual({ parts: expected.row.parts, granted: expected.granted })
        row = expected.row
      }
    }),
    { seed, numRuns: 50 },
  )
})

test('a reservation is void after 3 seconds, and one from a clock that was set back', async () => {
  const [store] = [createPostgresStore(database.pool, { random: () => Buffer.from('a') })]
  const report = {
    bucketId: 'void',
    limit: 600,
    charge: 0,
    returned: 0,
    retained: 0,
    reserves: true,
  }
  await store.charge(report)
  const hold = (until: string) =>
    database.pool.query(
      `update tidegate.rate_limits set reservations = jsonb_build_object('b',
         jsonb_build_array(6 * 60000, floor(extract(epoch from clock_timestamp()) * 1000)::bigint + $1::int))
       where bucket = 'void'`,
      [until],
    )
  await hold('2000')
  expect(await store.charge(report)).toMatchObject({ granted: 0 })
  for (const until of ['-1', '60000']) {
    await hold(until)
    expect(await store.charge(report)).toMatchObject({ granted: 6 * unit })
  }
})

test('two processes at 3 times the limit admit what one bucket would, within 1 %', async () => {
  const limit = 6000
  const request = requestOf('two', limit)
  const processes = [createProcess(), createProcess()]
  const model = createModel(limit, Date.now())
  let admitted = 0
  let expected = 0
  const waiting: Promise<void>[] = []
  // About two seconds, in gusts: all of one gust come before any answer of the store to it.
  for (let offered = 0; offered < 3 * limit; ) {
    for (let i = 0; i < 90; i++, offered++) {
      if (model.request(1, limit, Date.now()).admitted) expected++
      const taken = processes[offered % 2]?.limiter.consume(request)
      waiting.push(Promise.resolve(taken).then((one) => void (one?.admitted && admitted++)))
    }
    await delay(10)
  }
  await Promise.all(waiting)
  const roundTrips = processes.reduce((sum, one) => sum + one.roundTrips(), 0)
  console.log(
    `admitted ${admitted}, one bucket ${expected}, ${roundTrips} round trips for ${waiting.length} requests`,
  )
  expect(Math.abs(admitted - expected)).toBeLessThanOrEqual(expected / 100)
  expect(roundTrips).toBeLessThan(limit / 10)
  await Promise.all(processes.map((one) => one.close()))
  const { reservations = {} } = (await rowOf(`${request.owner}:publishable`)) ?? {}
  expect(Object.values(reservations).map(([parts]) => parts)).toEqual([0, 0])
}, 60_000)

test('many processes that see a bucket first at once make one bucket of it', async () => {
  const request = requestOf('new', 8)
  const processes = Array.from({ length: 5 }, () => createProcess())
  const taken = await Promise.all(
    Array.from({ length: 20 }, (_, i) => processes[i % 5]?.limiter.consume(request)),
  )
  expect(taken.filter((one) => one?.admitted)).toHaveLength(8)
  await Promise.all(processes.map((one) => one.close()))
})

/** A process behind a proxy, which has just shared a bucket. */
async function createDistant(request: RateLimitRequest) {
  const proxy = await startTcpProxy(database.url)
  const { limiter, close } = createProcess(proxy.url, { queryTimeoutMs: 250 })
  await limiter.consume(request)
  return { limiter, close, proxy }
}

/** Of a request that fails: what its caller is told. */
const failureOf = (limiter: RateLimiter, request: RateLimitRequest) =>
  Promise.resolve(limiter.consume(request)).then(
    () => undefined,
    (error) => toApiError(error),
  )

/** Units that a bucket of 100 gains at most from `started` on. */
const gainedSince = (started: number) =>
  Math.ceil(((performance.now() - started) * 100) / 60_000) + 1

test('while the database is away requests are refused with 503', async () => {
  const request = requestOf('away', 100)
  const { limiter, close, proxy } = await createDistant(request)
  await proxy.close()
  for (let i = 0; i < 3; i++)
    expect(await failureOf(limiter, request)).toMatchObject({ status: 503 })
  await close()
})

test('behind a line that has gone silent nobody waits for long, and buckets are shared when it is back', async () => {
  const request = requestOf('silent', 100)
  const started = performance.now()
  const { limiter, close, proxy } = await createDistant(request)
  proxy.freeze()
  const failures = await Promise.all(Array.from({ length: 20 }, () => failureOf(limiter, request)))
  for (const failure of failures) expect(failure).toMatchObject({ status: 503 })
  expect(performance.now() - started).toBeLessThan(2000)
  expect((await limiter.consume(request)).admitted).toBe(true)
  await close()
  await proxy.close()
  const { parts = 0 } = (await rowOf('org_silent:publishable')) ?? {}
  // Statements that nobody heard of are not made again.
  expect(parts / unit).toBeGreaterThanOrEqual(98)
  expect(parts / unit).toBeLessThanOrEqual(98 + gainedSince(started))
})
