import { randomInt } from 'node:crypto'
import fc from 'fast-check'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import type { RateLimitRequest } from '../../../../infra/access/rate-limit/bucket.ts'
import { createRateLimiter } from '../../../../infra/access/rate-limit/limiter.ts'
import { createRandom } from '../../../../infra/random.ts'
import { amount } from '../../../support/long.ts'
import { createMemoryStore } from './support/memory-store.ts'
import { createModel } from './support/model.ts'
import { createVirtualTime } from './support/virtual-time.ts'

const seed = Number(process.env.SEED ?? randomInt(2 ** 31))
console.log(`rate limiter, one process: SEED=${seed}`)

const limits = fc.constantFrom(1, 7, 60, 100, 250, 600, 3000, 100_000)
const gap = fc.oneof(fc.constant(0), fc.integer({ max: 30, min: 0 }), fc.integer({ max: 90_000, min: 0 }))
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
  otherLimit: fc.option(limits, { freq: 20 }),
})

function createSingle() {
  const time = createVirtualTime()
  const shared = createMemoryStore({ clock: time.clock })
  const limiter = createRateLimiter({
    store: shared.store,
    random: createRandom(),
    logger: pino({ level: 'silent' }),
    clock: time.clock,
    every: time.every,
    answerWithinMs: 60_000,
  })
  const request = (limit: number, cost = 1): RateLimitRequest => ({
    organizationId: 'org_0',
    keyType: 'secret',
    limit,
    cost,
  })
  return { time, shared, limiter, request }
}

test('one process decides as one bucket does, whatever the costs, pauses and changes of the limit', async () => {
  let compared = 0
  await fc.assert(
    fc.asyncProperty(limits, fc.array(step, { maxLength: 120 }), async (firstLimit, steps) => {
      const { time, limiter, request } = createSingle()
      let limit = firstLimit
      // A bucket is full at the limit that its first request brings.
      const model = createModel(steps[0]?.otherLimit ?? limit, time.clock())
      for (const { gap, cost, burst, otherLimit } of steps) {
        await time.runUntil(time.clock() + gap)
        limit = otherLimit ?? limit
        for (let i = 0; i < burst; i++) {
          const expected = model.request(cost, limit, time.clock())
          const { retryAfterSeconds, ...taken } = await limiter.consume(request(limit, cost))
          expect(taken).toEqual(expected)
          expect(retryAfterSeconds > 0).toBe(!taken.admitted)
          if (!taken.admitted && cost <= limit) {
            expect(model.wouldAdmit(cost, time.clock() + retryAfterSeconds * 1000)).toBe(true)
            if (retryAfterSeconds > 1)
              expect(model.wouldAdmit(cost, time.clock() + (retryAfterSeconds - 1) * 1000)).toBe(false)
          }
          compared++
        }
      }
    }),
    { seed, numRuns: amount({ few: 50, many: 150 }) },
  )
  console.log(`${compared} decisions compared`)
})
