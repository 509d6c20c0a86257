import { setTimeout as delay } from 'node:timers/promises'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { RateLimitRequest } from '../../../../infra/access/rate-limit/bucket.ts'
import { unit } from '../../../../infra/access/rate-limit/bucket.ts'
import { createRateLimiter, type RateLimiter } from '../../../../infra/access/rate-limit/limiter.ts'
import {
  createPostgresStore,
  createRateLimitTables,
  rateLimitPoolOptions,
} from '../../../../infra/access/rate-limit/postgres-store.ts'
import type { BucketStore } from '../../../../infra/access/rate-limit/shared-bucket.ts'
import { createPool, transaction } from '../../../../infra/postgres/pool.ts'
import { createRandom } from '../../../../infra/random.ts'
import { eventually } from '../../../support/eventually.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/postgres.ts'
import { startTcpProxy } from '../../../support/tcp-proxy.ts'
import { createModel } from './support/model.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
  const tables = () => transaction(database.pool, createRateLimitTables)
  await Promise.all([tables(), tables(), tables()])
})
afterAll(() => database.drop())

const silent = pino({ level: 'silent' })

/** A process with connections of its own. */
function createProcess(url = database.url, { logger = silent, answerWithinMs = 5000 } = {}) {
  const pool = createPool({ url, ...rateLimitPoolOptions })
  const inner = createPostgresStore(pool, { logger })
  let roundTrips = 0
  const store: BucketStore = {
    update(bucketId, change) {
      roundTrips++
      return inner.update(bucketId, change)
    },
  }
  const limiter = createRateLimiter({ store, random: createRandom(), logger, answerWithinMs })
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
  organizationId: `org_${name}`,
  keyType: 'publishable',
  limit,
  cost: 1,
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
  const { rows } = await database.pool.query<{ state: string }>(
    'select state from tidegate.rate_limit_buckets where bucket = $1',
    [`${request.organizationId}:publishable`],
  )
  expect(JSON.parse(rows[0]?.state ?? '')).toMatchObject({ limit, leases: {} })
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

interface Line {
  level: number
  msg: string
}

/** A process behind a proxy, with its log; it has just shared a bucket. */
async function createDistant(request: RateLimitRequest) {
  const lines: Line[] = []
  const logger = pino({ level: 'info' }, { write: (line: string) => void lines.push(JSON.parse(line)) })
  const proxy = await startTcpProxy(database.url)
  const { limiter, close } = createProcess(proxy.url, { logger, answerWithinMs: 250 })
  await limiter.consume(request)
  return { limiter, close, proxy, levels: () => lines.map(({ level }) => level) }
}

async function takeTimed(limiter: RateLimiter, request: RateLimitRequest, count: number) {
  let longestMs = 0
  let admitted = 0
  for (let i = 0; i < count; i++) {
    const started = performance.now()
    if ((await limiter.consume(request)).admitted) admitted++
    longestMs = Math.max(longestMs, performance.now() - started)
  }
  return { longestMs, admitted }
}

/** Units that a bucket of 100 gains at most from `started` on. */
const gainedSince = (started: number) => Math.ceil(((performance.now() - started) * 100) / 60_000) + 1

const warned = 40
const informed = 30

test('while the database is away each process limits alone; nothing waits or fails', async () => {
  const request = requestOf('away', 100)
  const started = performance.now()
  const { limiter, close, proxy, levels } = await createDistant(request)
  await proxy.close()
  const { longestMs, admitted } = await takeTimed(limiter, request, 150)
  expect(levels()).toEqual([warned])
  expect(longestMs).toBeLessThan(2000)
  // One was taken before.
  expect(admitted).toBeGreaterThanOrEqual(99)
  expect(admitted).toBeLessThanOrEqual(99 + gainedSince(started))
  await close()
})

test('behind a line that has gone silent one wait is short and the next ones are none; then buckets are shared again', async () => {
  const request = requestOf('silent', 100)
  const started = performance.now()
  const { limiter, close, proxy, levels } = await createDistant(request)
  proxy.freeze()
  const first = await takeTimed(limiter, request, 1)
  expect(first.longestMs).toBeGreaterThan(200)
  expect(first.longestMs).toBeLessThan(2000)
  const { admitted } = await takeTimed(limiter, request, 20)
  expect(first.admitted + admitted).toBe(21)
  expect(levels()).toEqual([warned])
  await eventually(() => expect(levels().at(-1)).toBe(informed))
  await close()
  await proxy.close()
  const { rows } = await database.pool.query<{ state: string }>(
    `select state from tidegate.rate_limit_buckets where bucket = 'org_silent:publishable'`,
  )
  expect(JSON.parse(rows[0]?.state ?? '').total / unit).toBeLessThanOrEqual(78 + gainedSince(started))
})

test('a bucket that cannot be read begins anew; the log tells it once', async () => {
  const lines: Line[] = []
  const logger = pino({ level: 'info' }, { write: (line: string) => void lines.push(JSON.parse(line)) })
  const texts = { broken: '{', foreign: '{"limit":"8","total":null}' }
  for (const [name, text] of Object.entries(texts)) {
    await database.pool.query('insert into tidegate.rate_limit_buckets (bucket, state) values ($1, $2)', [
      `org_${name}:publishable`,
      text,
    ])
  }
  const { limiter, close } = createProcess(database.url, { logger })
  for (const name of Object.keys(texts)) {
    for (const remaining of [7, 6])
      expect(await limiter.consume(requestOf(name, 8))).toMatchObject({ remaining })
  }
  await close()
  expect(lines).toMatchObject([
    { level: warned, bucket: 'org_broken:publishable' },
    { level: warned, bucket: 'org_foreign:publishable' },
  ])
})

test('a row that somebody holds keeps only its own bucket from being shared', async () => {
  const request = requestOf('held', 100)
  const lines: Line[] = []
  const logger = pino({ level: 'info' }, { write: (line: string) => void lines.push(JSON.parse(line)) })
  const { limiter, close, roundTrips } = createProcess(database.url, { logger, answerWithinMs: 250 })
  await limiter.consume(request)
  const holder = await database.pool.connect()
  await holder.query('begin')
  await holder.query(
    `select 1 from tidegate.rate_limit_buckets where bucket = 'org_held:publishable' for update`,
  )
  for (let i = 0; i < 5; i++) expect(await limiter.consume(request)).toMatchObject({ admitted: true })
  const before = roundTrips()
  expect(await limiter.consume(requestOf('free', 100))).toMatchObject({ remaining: 99 })
  expect(roundTrips()).toBe(before + 1)
  expect(lines).toMatchObject([{ level: warned, bucket: 'org_held:publishable' }])
  await holder.query('rollback')
  holder.release()
  await eventually(() =>
    expect(lines.at(-1)).toMatchObject({ level: informed, bucket: 'org_held:publishable' }),
  )
  await close()
  const { rows } = await database.pool.query<{ state: string }>(
    `select state from tidegate.rate_limit_buckets where bucket = 'org_held:publishable'`,
  )
  expect(JSON.parse(rows[0]?.state ?? '').total / unit).toBeLessThan(100)
})
