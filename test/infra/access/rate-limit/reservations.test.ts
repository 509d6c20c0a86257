import { describe, expect, test } from 'vitest'
import { unit } from '../../../../infra/access/rate-limit/bucket.ts'
import type { RateLimiter } from '../../../../infra/access/rate-limit/limiter.ts'
import { admittedOf, createProcesses, requestOf, takeMany } from './support/processes.ts'

const one = requestOf('0')
const bucketId = 'org_0:secret'

describe('reservations', () => {
  test('a process in steady use holds a hundredth of the limit, two share it', async () => {
    const { limiters, reserved, wait } = createProcesses({ count: 2 })
    await takeMany(limiters[0], 2)
    expect(reserved(bucketId)).toEqual([6])
    await takeMany(limiters[1], 2)
    await takeMany(limiters[0], 20)
    await takeMany(limiters[1], 20)
    await wait(10)
    expect(reserved(bucketId)).toEqual([3, 3])
  })

  test('however many processes come and go, they hold no more than that together', async () => {
    const { limiters, reserved, wait } = createProcesses({ count: 8 })
    for (let i = 0; i < 200; i++) {
      await takeMany(limiters[(i * i) % 8], 1 + (i % 5))
      await wait(i % 40)
      expect(reserved(bucketId).reduce((sum, units) => sum + units, 0)).toBeLessThanOrEqual(6)
    }
  })

  test('a single request holds nothing back', async () => {
    const { limiter, reserved } = createProcesses()
    expect(await limiter.consume(one)).toMatchObject({ admitted: true, remaining: 599 })
    expect(reserved(bucketId)).toEqual([])
  })

  test('with them requests are answered at once', async () => {
    const { limiter, roundTrips } = createProcesses()
    await takeMany(limiter, 2)
    const before = roundTrips()
    for (let i = 0; i < 3; i++) expect(limiter.consume(one)).toMatchObject({ admitted: true })
    expect(roundTrips()).toBe(before)
  })

  test('units that are not used go back after a second', async () => {
    const { limiter, reserved, wait, row } = createProcesses()
    await takeMany(limiter, 3)
    await wait(900)
    expect(reserved(bucketId)).toEqual([6])
    await wait(300)
    expect(reserved(bucketId)).toEqual([0])
    expect(row(bucketId)?.parts).toBeGreaterThan(597 * unit)
  })

  test('closing gives back what is held, and what was used is not lost', async () => {
    const { limiter, row } = createProcesses()
    await takeMany(limiter, 10)
    await limiter.close()
    expect(row(bucketId)).toMatchObject({ parts: 590 * unit })
    expect(await limiter.consume(one)).toMatchObject({ admitted: true })
  })

  test('what a dead process held is refilled for others 3 seconds later', async () => {
    const { limiters, wait } = createProcesses({ count: 2, dead: [0] })
    await takeMany(limiters[0], 2)
    expect(admittedOf(await takeMany(limiters[1], 600))).toBe(592)
    await wait(90_000)
    expect((await takeMany(limiters[1], 1))[0]).toMatchObject({ remaining: 599 })
  })

  test('organizations pushed out by others give back what they hold, each with a bucket of its own', async () => {
    const { limiter, reserved, wait, row } = createProcesses({ maxBuckets: 10 })
    for (let i = 0; i < 30; i++) await takeMany(limiter, 2, requestOf(`${i}`))
    expect(await limiter.consume({ ...one, bucket: 'publishable' })).toMatchObject({
      remaining: 599,
    })
    expect(reserved(bucketId)).toEqual([6])
    for (let i = 0; i < 40; i++) await wait(50)
    expect(reserved(bucketId)).toEqual([0])
    expect(row(bucketId)?.parts).toBeGreaterThan(598 * unit)
  })
})

describe('debt', () => {
  test('what is refused is charged all the same, in other processes too, down to the limit below zero', async () => {
    const { limiters, wait } = createProcesses({ count: 2 })
    expect(admittedOf(await takeMany(limiters[0], 900))).toBe(600)
    await wait(200)
    const [refused] = await takeMany(limiters[1], 1)
    // 300 owed less 2 refilled, and this one.
    expect(refused).toMatchObject({ admitted: false, remaining: 0, retryAfterSeconds: 30 })
    await takeMany(limiters[1], 2000)
    expect((await takeMany(limiters[0], 1))[0]).toMatchObject({ retryAfterSeconds: 30 })
    await wait(200)
    await takeMany(limiters[0], 1)
    await wait(100)
    expect((await takeMany(limiters[0], 1))[0]).toMatchObject({
      admitted: false,
      retryAfterSeconds: 61,
    })
  })

  /** Spends until a refusal, and returns the wait that it asks for. */
  async function waitMsOf(limiter: RateLimiter | undefined): Promise<number> {
    let result = await limiter?.consume(one)
    while (result?.admitted) result = await limiter?.consume(one)
    return (result?.retryAfterSeconds ?? 0) * 1000
  }

  test('whoever waits as long as it was told is admitted', async () => {
    const { limiters, wait } = createProcesses({ count: 2 })
    const all = await takeMany(limiters[0], 650)
    await wait((all.at(-1)?.retryAfterSeconds ?? 0) * 1000)
    expect(await limiters[1]?.consume(one)).toMatchObject({ admitted: true })
  })

  test('that holds at the other process too, which has spent meanwhile', async () => {
    const { limiters, wait } = createProcesses({ count: 2 })
    for (const limiter of limiters) await takeMany(limiter, 400)
    await wait(30_000)
    for (let turn = 0; turn < 15; turn++) {
      const [here, there] = turn % 2 === 0 ? limiters : limiters.toReversed()
      await takeMany(there, 40)
      await wait(200)
      await wait(await waitMsOf(here))
      expect(await there?.consume(one), `turn ${turn}`).toMatchObject({ admitted: true })
    }
  })

  test('15 waits are obeyed of a process that had refused before the other one spent more', async () => {
    const { limiters, wait } = createProcesses({ count: 2 })
    for (let turn = 0; turn < 15; turn++) {
      const [here, there] = turn % 2 === 0 ? limiters : limiters.toReversed()
      await takeMany(here, turn === 0 ? 640 : 40)
      await wait(300)
      await takeMany(there, 40)
      await wait(300)
      await wait(await waitMsOf(here))
      expect(await there?.consume(one), `turn ${turn}`).toMatchObject({ admitted: true })
    }
  })

  test('a flood of refusals is reported a few times a second, not once each', async () => {
    const { limiter, wait, roundTrips } = createProcesses()
    await takeMany(limiter, 600)
    const before = roundTrips()
    for (let i = 0; i < 100; i++) {
      await takeMany(limiter, 50)
      await wait(10)
    }
    expect(roundTrips() - before).toBeLessThanOrEqual(12)
  })
})

describe('what costs nothing after all', () => {
  test('is given back, here and in the shared bucket', async () => {
    const { limiter, row } = createProcesses()
    const ten = { ...one, cost: 10 }
    await takeMany(limiter, 3, ten)
    limiter.refund(ten)
    expect(await limiter.consume(one)).toMatchObject({ remaining: 579 })
    await limiter.close()
    expect(row(bucketId)?.parts).toBe(579 * unit)
  })

  test('of a bucket that is full gives nothing more', async () => {
    const { limiter, wait } = createProcesses()
    await takeMany(limiter, 1)
    await wait(5000)
    limiter.refund(one)
    expect(await limiter.consume(one)).toMatchObject({ remaining: 599 })
  })
})

test('a lowered limit clips what is there, and a raised one gives nothing at once', async () => {
  const { limiter } = createProcesses()
  const at = (limit: number) => limiter.consume(requestOf('0', { limit }))
  expect(await at(600)).toMatchObject({ limit: 600, remaining: 599 })
  expect(await at(100)).toMatchObject({ limit: 100, remaining: 99 })
  expect(await at(1000)).toMatchObject({ limit: 1000, remaining: 98 })
})
