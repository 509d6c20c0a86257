import { pino } from 'pino'
import { describe, expect, test } from 'vitest'
import type { RateLimitRequest } from '../../../../infra/access/rate-limit/bucket.ts'
import { createRateLimiter, type RateLimiter } from '../../../../infra/access/rate-limit/limiter.ts'
import { createRandom } from '../../../../infra/random.ts'
import { createMemoryStore } from './support/memory-store.ts'
import { createVirtualTime } from './support/virtual-time.ts'

const limit = 600
const one: RateLimitRequest = { organizationId: 'org_0', keyType: 'secret', limit, cost: 1 }
const bucketId = 'org_0:secret'
const unit = 60_000

/** The timers of the dead ones never come. */
function createNodes(count: number, { dead = [] }: { dead?: number[] } = {}) {
  const time = createVirtualTime()
  const shared = createMemoryStore({ clock: time.clock })
  const limiters = Array.from({ length: count }, (_, index) =>
    createRateLimiter({
      store: shared.store,
      random: createRandom(),
      logger: pino({ level: 'silent' }),
      clock: time.clock,
      every: dead.includes(index) ? () => () => {} : time.every,
      answerWithinMs: 60_000,
    }),
  )
  const leases = () => Object.values(shared.row(bucketId).leases).map(({ parts }) => parts / unit)
  const wait = (ms: number) => time.runUntil(time.clock() + ms)
  return { limiters, leases, wait, shared, clock: time.clock }
}

async function takeMany(limiter: RateLimiter | undefined, count: number, request = one) {
  const all = []
  for (let i = 0; i < count; i++) all.push(await limiter?.consume(request))
  return all
}

const admittedOf = (all: ({ admitted: boolean } | undefined)[]) =>
  all.filter((taken) => taken?.admitted).length

describe('leases', () => {
  test('a process in steady use holds a hundredth of the limit, two share it', async () => {
    const { limiters, leases, wait } = createNodes(2)
    await takeMany(limiters[0], 2)
    expect(leases()).toEqual([6])
    await takeMany(limiters[1], 2)
    await takeMany(limiters[0], 20)
    await takeMany(limiters[1], 20)
    await wait(10)
    expect(leases()).toEqual([3, 3])
  })

  test('a single request holds nothing back', async () => {
    const { limiters, leases } = createNodes(1)
    expect(await limiters[0]?.consume(one)).toMatchObject({ admitted: true, remaining: 599 })
    expect(leases()).toEqual([])
  })

  test('units that are not used go back after a second', async () => {
    const { limiters, leases, wait } = createNodes(1)
    await takeMany(limiters[0], 3)
    await wait(900)
    expect(leases()).toEqual([6])
    await wait(300)
    expect(leases()).toEqual([])
  })

  test('closing gives back what is held, and what was used is not lost', async () => {
    const { limiters, leases, shared } = createNodes(1)
    await takeMany(limiters[0], 10)
    await limiters[0]?.close()
    expect(leases()).toEqual([])
    expect(shared.row(bucketId).total).toBe(590 * unit)
    expect(await limiters[0]?.consume(one)).toMatchObject({ admitted: true })
  })

  test('what a dead process held is there for others once its lease has expired', async () => {
    const { limiters, leases, wait } = createNodes(2, { dead: [0] })
    await takeMany(limiters[0], 2)
    expect(admittedOf(await takeMany(limiters[1], 600))).toBe(592)
    await wait(2900)
    expect(leases()).toContain(6)
    await wait(200)
    await takeMany(limiters[1], 1)
    expect(leases()).not.toContain(6)
  })
})

describe('debt', () => {
  test('what is refused is charged all the same, in other processes too, down to the limit below zero', async () => {
    const { limiters, wait } = createNodes(2)
    expect(admittedOf(await takeMany(limiters[0], 900))).toBe(600)
    await wait(200)
    const [refused] = await takeMany(limiters[1], 1)
    // 300 owed less 2 refilled, and this one.
    expect(refused).toMatchObject({ admitted: false, remaining: 0, retryAfterSeconds: 30 })
    await takeMany(limiters[1], 2000)
    expect((await takeMany(limiters[0], 1))[0]).toMatchObject({ retryAfterSeconds: 30 })
    await wait(200)
    await takeMany(limiters[0], 1)
    await wait(10)
    expect((await takeMany(limiters[0], 1))[0]).toMatchObject({ admitted: false, retryAfterSeconds: 61 })
  })

  test('whoever waits as long as it was told is admitted', async () => {
    const { limiters, wait } = createNodes(2)
    const all = await takeMany(limiters[0], 650)
    await wait((all.at(-1)?.retryAfterSeconds ?? 0) * 1000)
    expect(await limiters[1]?.consume(one)).toMatchObject({ admitted: true })
  })

  test('a flood of refusals is reported a few times a second, not once each', async () => {
    const { limiters, wait, shared } = createNodes(1)
    await takeMany(limiters[0], 600)
    const before = shared.roundTrips()
    for (let i = 0; i < 100; i++) {
      await takeMany(limiters[0], 50)
      await wait(10)
    }
    expect(shared.roundTrips() - before).toBeLessThanOrEqual(12)
  })
})

describe('what costs nothing after all', () => {
  test('is given back, here and in the shared bucket', async () => {
    const { limiters, shared } = createNodes(1)
    const ten = { ...one, cost: 10 }
    await takeMany(limiters[0], 3, ten)
    limiters[0]?.refund(ten)
    expect(await limiters[0]?.consume(one)).toMatchObject({ remaining: 579 })
    await limiters[0]?.close()
    expect(shared.row(bucketId).total).toBe(579 * unit)
  })

  test('of a bucket that is full gives nothing more', async () => {
    const { limiters, wait } = createNodes(1)
    await takeMany(limiters[0], 1)
    await wait(5000)
    limiters[0]?.refund(one)
    expect(await limiters[0]?.consume(one)).toMatchObject({ remaining: 599 })
  })
})

test('organizations and key types have buckets of their own; what is forgotten is given back', async () => {
  const time = createVirtualTime()
  const shared = createMemoryStore({ clock: time.clock })
  const options = {
    store: shared.store,
    random: createRandom(),
    logger: pino({ level: 'silent' }),
    clock: time.clock,
  }
  const limiter = createRateLimiter({ ...options, every: time.every, answerWithinMs: 60_000, maxBuckets: 1 })
  await takeMany(limiter, 5)
  expect(await limiter.consume({ ...one, keyType: 'publishable' })).toMatchObject({ remaining: 599 })
  expect(await limiter.consume({ ...one, organizationId: 'org_1' })).toMatchObject({ remaining: 599 })
  await time.runUntil(time.clock() + 100)
  // One unit has been refilled.
  expect(shared.row(bucketId)).toMatchObject({ total: 596 * unit, leases: {} })
  expect(await limiter.consume(one)).toMatchObject({ remaining: 595 })
})
