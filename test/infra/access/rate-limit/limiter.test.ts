import { setImmediate as settled } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { partsPerUnit, type RateLimiter } from '../../../../infra/access/rate-limit/limiter.ts'
import { countAdmitted, createProcesses, type Row, requestOf, takeMany } from './support.ts'

const one = requestOf('0')
const bucketId = 'org_0:secret'
const unitsOf = (row?: Row) => Math.floor((row?.parts ?? 0) / partsPerUnit)

describe('unreported units', () => {
  test('stay below a twentieth of the limit; a request that would reach that waits for the store', async () => {
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

  test('are reported within 50 ms, all buckets in one statement', async () => {
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

  test('count while their report is in flight', async () => {
    const { limiter, wait } = createProcesses({ travel: (after) => after(20) })
    const first = limiter.consume(one)
    await settled()
    await wait(40)
    await first
    await takeMany(limiter, 29)
    // The report is sent at 50 ms and completes at 90.
    await wait(30)
    const waiting = limiter.consume(one)
    expect(waiting).toBeInstanceOf(Promise)
    await wait(100)
    expect(await waiting).toMatchObject({ admitted: true, remaining: 569 })
    expect(limiter.consume(one)).toMatchObject({ admitted: true })
  })

  test('are reported of evicted buckets too', async () => {
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
  test('includes rejected requests, in all processes, down to one negative limit', async () => {
    const { limiters, wait } = createProcesses({ count: 2 })
    expect(countAdmitted(await takeMany(limiters[0], 900))).toBe(600)
    await wait(200)
    const [refused] = await takeMany(limiters[1], 1)
    // A debt of 300 minus 2 refilled, and this request.
    expect(refused).toMatchObject({ admitted: false, remaining: 0, retryAfterSeconds: 30 })
    await takeMany(limiters[1], 2000)
    for (const limiter of limiters)
      expect((await takeMany(limiter, 1))[0]).toMatchObject({
        admitted: false,
        retryAfterSeconds: 61,
      })
  })

  test('is clipped before a charge, not after it, so a batch of rejections admits no request', async () => {
    const { limiter } = createProcesses()
    const all = await Promise.all(Array.from({ length: 1300 }, () => limiter.consume(one)))
    expect(countAdmitted(all)).toBe(600)
    expect(all.findIndex(({ admitted }) => !admitted)).toBe(600)
    expect(all.at(-1)).toMatchObject({ remaining: 0, retryAfterSeconds: 61 })
  })

  /** Spends until a request is rejected, and returns its retry time. */
  async function waitMsOf(limiter: RateLimiter | undefined): Promise<number> {
    let result = await limiter?.consume(one)
    while (result?.admitted) result = await limiter?.consume(one)
    return (result?.retryAfterSeconds ?? 0) * 1000
  }

  test('a request after the retry time is admitted although another process has spent more since', async () => {
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

  test('concurrent rejections share one statement', async () => {
    const { limiter, wait, statements } = createProcesses()
    await takeMany(limiter, 600)
    const before = statements()
    for (let i = 0; i < 10; i++) {
      const all = await Promise.all(Array.from({ length: 50 }, () => limiter.consume(one)))
      expect(countAdmitted(all)).toBe(0)
      await wait(10)
    }
    expect(statements() - before).toBe(10)
  })
})

test('refunds units here and in the shared bucket', async () => {
  const { limiter, row } = createProcesses()
  const ten = { ...one, cost: 10 }
  await takeMany(limiter, 3, ten)
  limiter.refund(ten)
  expect(await limiter.consume(one)).toMatchObject({ remaining: 579 })
  await limiter.close()
  expect(row(bucketId)?.parts).toBe(579 * partsPerUnit)
})

test('does not refund beyond a full bucket', async () => {
  const { limiter, wait } = createProcesses()
  await takeMany(limiter, 1)
  await wait(5000)
  limiter.refund(one)
  expect(await limiter.consume(one)).toMatchObject({ remaining: 599 })
})

test('a lowered limit clips the balance, and a raised one does not fill the bucket', async () => {
  const { limiter } = createProcesses()
  const at = (limit: number) => limiter.consume(requestOf('0', { limit }))
  expect(await at(600)).toMatchObject({ limit: 600, remaining: 599 })
  expect(await at(100)).toMatchObject({ limit: 100, remaining: 99 })
  expect(await at(1000)).toMatchObject({ limit: 1000, remaining: 98 })
})
