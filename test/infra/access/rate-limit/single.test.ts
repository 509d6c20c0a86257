import { randomInt } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { amount } from '../../../support/long.ts'
import { createModel, createProcesses, requestOf } from './support.ts'

const seed = Number(process.env.SEED ?? randomInt(2 ** 31))
console.log(`rate limiter, one process: SEED=${seed}`)

const limits = fc.constantFrom(1, 7, 60, 100, 250, 600, 3000, 100_000)
const gap = fc.oneof(
  fc.constant(0),
  fc.integer({ max: 30, min: 0 }),
  fc.integer({ max: 90_000, min: 0 }),
)
const step = fc.record({
  gap,
  cost: fc.oneof(
    { weight: 6, arbitrary: fc.constant(1) },
    { weight: 1, arbitrary: fc.integer({ min: 1, max: 700 }) },
  ),
  burst: fc.oneof(
    { weight: 5, arbitrary: fc.constant(1) },
    { weight: 1, arbitrary: fc.integer({ min: 1, max: 60 }) },
  ),
})

test('one process decides like a single bucket, or rejects up to a thousandth or one unit too early', async () => {
  let compared = 0
  let early = 0
  await fc.assert(
    fc.asyncProperty(limits, fc.array(step, { maxLength: 120 }), async (limit, steps) => {
      const { time, limiter } = createProcesses()
      const model = createModel(limit, time.clock())
      const slack = Math.max(1, limit / 1000)
      for (const { gap, cost: drawn, burst } of steps) {
        const cost = Math.min(drawn, limit)
        await time.runUntil(time.clock() + gap)
        for (let i = 0; i < burst; i++) {
          const hadSlack = model.wouldAdmit(Math.ceil(cost + slack), time.clock())
          const expected = model.request(cost, time.clock())
          const { admitted, remaining, retryAfterSeconds, ...echoed } = await limiter.consume(
            requestOf('0', { limit, cost }),
          )
          expect(echoed).toEqual({ limit, cost })
          expect(admitted ? expected.admitted : !hadSlack).toBe(true)
          expect(remaining).toBeLessThanOrEqual(expected.remaining)
          expect(remaining).toBeGreaterThanOrEqual(Math.floor(expected.remaining - slack))
          expect(retryAfterSeconds > 0).toBe(!admitted)
          if (!admitted)
            expect(model.wouldAdmit(cost, time.clock() + retryAfterSeconds * 1000)).toBe(true)
          if (retryAfterSeconds > 1 && cost + slack <= limit)
            expect(
              model.wouldAdmit(
                Math.ceil(cost + slack),
                time.clock() + (retryAfterSeconds - 1) * 1000,
              ),
            ).toBe(false)
          if (admitted !== expected.admitted) early++
          compared++
        }
      }
    }),
    { seed, numRuns: amount({ few: 50, many: 150 }) },
  )
  console.log(`${compared} decisions compared, ${early} rejected too early`)
})

test('returns the remaining units without charging any', async () => {
  const { time, limiter } = createProcesses()
  const request = requestOf('0', { limit: 60 })
  expect(limiter.remaining(request)).toBe(60)
  for (let i = 0; i < 70; i++) await limiter.consume(request)
  expect(limiter.remaining(request)).toBe(-10)
  expect(limiter.remaining(request)).toBe(-10)
  await time.runUntil(time.clock() + 20_000)
  expect(limiter.remaining(request)).toBe(10)
})
