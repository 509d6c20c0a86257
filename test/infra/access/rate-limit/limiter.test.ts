import { setImmediate as settled } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { type RateLimiter, unit } from '../../../../infra/access/rate-limit/limiter.ts'
import { admittedOf, createProcesses, type Row, requestOf, takeMany } from './support.ts'

const one = requestOf('0')
const bucketId = 'org_0:secret'
const unitsOf = (row?: Row) => Math.floor((row?.parts ?? 0) / unit)

describe('what is unreported', () => {
  test('stays below a twentieth of the limit; a request that would reach it waits for the store', async () => {
    const { limiter, statements } = createProcesses()
    await takeMany(limiter, 1)
    const before = statements()
    for (let i = 0; i < 29; i++) expect(limiter.consume(one)).toMatchObject({ admitted: true })
    expect(statements()).toBe(before)
    const waiting = limiter.consume(one)
    expect(waiting).toBeInstanceOf(Promise)
    expect(await waiting).toMatchObject({ admitted: true, remaining: 569 })
    expect(statements()).toBe(before + 1)
    expect(limiter.consume(one)).toMatchObject({ admitted: true, remaining: 568 })
  })

  test('is reported within 50 ms, all buckets in one statement', async () => {
    const { limiter, statements, wait, row } = createProcesses()
    for (const name of ['0', '1', '2']) await takeMany(limiter, 5, requestOf(name))
    const before = statements()
    await wait(50)
    expect(statements()).toBe(before + 1)
    for (const id of ['org_0:secret', 'org_1:secret', 'org_2:secret'])
      expect(unitsOf(row(id))).toBe(595)
    await wait(5000)
    expect(statements()).toBe(before + 1)
  })

  test('counts while its report is on the way', async () => {
    const { limiter, wait } = createProcesses({ travel: (after) => after(20) })
    const first = limiter.consume(one)
    await settled()
    await wait(40)
    await first
    await takeMany(limiter, 29)
    // The report left at 50 ms and is answered at 90.
    await wait(30)
    const waiting = limiter.consume(one)
    expect(waiting).toBeInstanceOf(Promise)
    await wait(100)
    expect(await waiting).toMatchObject({ admitted: true, remaining: 569 })
    expect(limiter.consume(one)).toMatchObject({ admitted: true })
  })

  test('is reported of buckets that others have pushed out, each a bucket of its own', async () => {
    const { limiter, wait, row } = createProcesses({ maxBuckets: 10 })
    for (let i = 0; i < 30; i++) await takeMany(limiter, 2, requestOf(`${i}`))
    expect(await limiter.consume({ ...one, bucket: 'publishable' })).toMatchObject({
      remaining: 599,
    })
    expect(limiter.remaining(one)).toBe(598)
    expect(await limiter.consume(one)).toMatchObject({ admitted: true, remaining: 597 })
    await wait(50)
    expect(unitsOf(row(bucketId))).toBe(597)
    expect(unitsOf(row('org_29:secret'))).toBe(598)
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
    for (const limiter of limiters)
      expect((await takeMany(limiter, 1))[0]).toMatchObject({
        admitted: false,
        retryAfterSeconds: 61,
      })
  })

  test('is clipped before a charge and not after it, so that a group of refusals admits nobody', async () => {
    const { limiter } = createProcesses()
    const all = await Promise.all(Array.from({ length: 1300 }, () => limiter.consume(one)))
    expect(admittedOf(all)).toBe(600)
    expect(all.findIndex(({ admitted }) => !admitted)).toBe(600)
    expect(all.at(-1)).toMatchObject({ remaining: 0, retryAfterSeconds: 61 })
  })

  /** Spends until a refusal, and returns the wait that it asks for. */
  async function waitMsOf(limiter: RateLimiter | undefined): Promise<number> {
    let result = await limiter?.consume(one)
    while (result?.admitted) result = await limiter?.consume(one)
    return (result?.retryAfterSeconds ?? 0) * 1000
  }

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

  test('refusals that come together are one statement', async () => {
    const { limiter, wait, statements } = createProcesses()
    await takeMany(limiter, 600)
    const before = statements()
    for (let i = 0; i < 10; i++) {
      const all = await Promise.all(Array.from({ length: 50 }, () => limiter.consume(one)))
      expect(admittedOf(all)).toBe(0)
      await wait(10)
    }
    expect(statements() - before).toBe(10)
  })
})

test('what costs nothing after all is given back, here and in the shared bucket', async () => {
  const { limiter, row } = createProcesses()
  const ten = { ...one, cost: 10 }
  await takeMany(limiter, 3, ten)
  limiter.refund(ten)
  expect(await limiter.consume(one)).toMatchObject({ remaining: 579 })
  await limiter.close()
  expect(row(bucketId)?.parts).toBe(579 * unit)
})

test('what costs nothing after all of a bucket that is full gives nothing more', async () => {
  const { limiter, wait } = createProcesses()
  await takeMany(limiter, 1)
  await wait(5000)
  limiter.refund(one)
  expect(await limiter.consume(one)).toMatchObject({ remaining: 599 })
})

test('a lowered limit clips what is there, and a raised one gives nothing at once', async () => {
  const { limiter } = createProcesses()
  const at = (limit: number) => limiter.consume(requestOf('0', { limit }))
  expect(await at(600)).toMatchObject({ limit: 600, remaining: 599 })
  expect(await at(100)).toMatchObject({ limit: 100, remaining: 99 })
  expect(await at(1000)).toMatchObject({ limit: 1000, remaining: 98 })
})
