import { randomInt } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { partsPerUnit } from '../../../../infra/access/rate-limit/limiter.ts'
import { amount } from '../../../support/long.ts'
import { createProcesses, type Fate, requestOf, takeMany } from './support.ts'

const seed = Number(process.env.SEED ?? randomInt(2 ** 31))
console.log(`rate limiter, outages: SEED=${seed}`)

const limit = 600
const bucketId = 'org_a:secret'
const one = requestOf('a')

test('requests fail without the store, as do those queued behind them', async () => {
  const { limiter, script, statements } = createProcesses()
  script(() => 'refused')
  const waiting = Array.from({ length: 3 }, () => limiter.consume(one))
  const outcomes = await Promise.allSettled(waiting)
  expect(outcomes.map(({ status }) => status)).toEqual(Array(3).fill('rejected'))
  expect(statements()).toBe(1)
})

test('a process admits from its last balance until a report fails', async () => {
  const { limiter, script, wait } = createProcesses()
  await takeMany(limiter, 1, one)
  script(() => 'refused')
  for (let i = 0; i < 20; i++) expect(limiter.consume(one)).toMatchObject({ admitted: true })
  await wait(50)
  await expect(limiter.consume(one)).rejects.toThrow('as scripted')
})

test('the next request uses a store that is back, and requests that failed meanwhile cost nothing', async () => {
  const { limiters, script } = createProcesses({ count: 2 })
  await takeMany(limiters[0], 1, one)
  script(() => 'refused')
  const expensive = { ...one, cost: 50 }
  for (let i = 0; i < 5; i++)
    await expect(limiters[0]?.consume(expensive)).rejects.toThrow('as scripted')
  script(() => 'healthy')
  expect(await limiters[0]?.consume(one)).toMatchObject({ admitted: true, remaining: limit - 2 })
  expect(await limiters[1]?.consume(one)).toMatchObject({ admitted: true, remaining: limit - 3 })
})

const fates = fc.constantFrom<Fate>('healthy', 'healthy', 'lost', 'refused')
const step = fc.record({
  fate: fates,
  takes: fc.integer({ min: 0, max: 4 }),
  gap: fc.constantFrom(0, 50, 300, 1100),
})

test('never charges twice, even if statements fail or their results are lost', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 15 }), async (steps) => {
      const { limiter, script, wait, row, time } = createProcesses()
      // Uses half, so that the bucket never gets full and loses a refill.
      await takeMany(limiter, 1, requestOf('a', { cost: limit / 2 }))
      const since = time.clock()
      let taken = 0
      for (const { fate, takes, gap } of steps) {
        script(() => fate)
        for (let i = 0; i < takes; i++) await Promise.resolve(limiter.consume(one)).catch(() => {})
        taken += takes
        await wait(gap)
      }
      script(() => 'healthy')
      for (let i = 0; i < 3; i++) await wait(1000)
      await limiter.close()
      const { parts = 0, at = 0 } = row(bucketId) ?? {}
      const left = Math.min(limit, limit / 2 + (limit * (at - since)) / (60 * 1000))
      expect(parts / partsPerUnit).toBeGreaterThanOrEqual(left - taken)
      expect(parts / partsPerUnit).toBeLessThanOrEqual(left)
    }),
    { seed, numRuns: amount({ few: 60, many: 200 }) },
  )
})
