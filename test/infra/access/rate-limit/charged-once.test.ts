import { randomInt } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { unit } from '../../../../infra/access/rate-limit/bucket.ts'
import type { RateLimiter } from '../../../../infra/access/rate-limit/limiter.ts'
import { createScriptedProcess, requestOf } from './support/scripted-process.ts'
import { type Fate, healthy, late, lost, refused, undone } from './support/scripted-store.ts'

const seed = Number(process.env.SEED ?? randomInt(2 ** 31))
console.log(`rate limiter, charged once: SEED=${seed}`)

const limit = 600
const one = requestOf('a')
const bucketId = 'org_a:secret'

async function takeMany(limiter: RateLimiter, count: number) {
  for (let i = 0; i < count; i++) await limiter.consume(one)
}

/** A process that has used half of its bucket: no refill is lost to a full bucket, no charge to the deepest debt. */
async function createHalfUsed() {
  const scripted = createScriptedProcess()
  const { limiter, row, clock } = scripted
  await limiter.consume(requestOf('a', { cost: limit / 2 }))
  const since = clock()
  return {
    ...scripted,
    /** Parts that the store should hold at its own time after `count` more requests. */
    expectCharged(count: number) {
      const { total, at } = row(bucketId)
      expect(total).toBe((limit / 2 - count) * unit + limit * (at - since))
    },
  }
}

describe('what a process takes is charged once', () => {
  test('while the store answers late, however often the process would have asked meanwhile', async () => {
    const { limiter, wait, script, release, roundTrips, expectCharged } = await createHalfUsed()
    script(() => late)
    for (let cycle = 0; cycle < 5; cycle++) {
      const before = roundTrips()
      for (let i = 0; i < 10; i++) {
        await takeMany(limiter, 2)
        await wait(200)
      }
      expect(roundTrips() - before).toBeLessThanOrEqual(1)
      release()
      await wait(0)
    }
    script(() => healthy)
    release()
    await wait(2000)
    await limiter.close()
    expectCharged(100)
  })

  test('by a request that the store decided after it had been answered', async () => {
    const { limiter, wait, script, release, expectCharged } = await createHalfUsed()
    await wait(5000)
    script(() => late)
    expect(await limiter.consume(one)).toMatchObject({ admitted: true })
    script(() => healthy)
    release()
    await wait(3000)
    await limiter.close()
    expectCharged(1)
  })

  const failures: [string, Fate][] = [
    ['never arrived', refused],
    ['was rolled back', undone],
    ['was committed without anybody hearing of it', lost],
    ['never arrived, which took long to find out', { ...refused, isLate: true }],
    ['was rolled back late', { ...undone, isLate: true }],
    ['was committed late without anybody hearing of it', { ...lost, isLate: true }],
  ]
  test.each(failures)('by a round trip that %s', async (_, fate) => {
    const { limiter, wait, script, release, expectCharged } = await createHalfUsed()
    await takeMany(limiter, 5)
    script(() => fate)
    await wait(3000)
    await takeMany(limiter, 5)
    release()
    await wait(3000)
    script(() => healthy)
    release()
    await wait(3000)
    await limiter.close()
    expectCharged(10)
  })

  const fate = fc.constantFrom(...[healthy, healthy, late, ...failures.map(([, fate]) => fate)])
  const step = fc.record({
    fate,
    takes: fc.integer({ min: 0, max: 4 }),
    gap: fc.constantFrom(0, 50, 300, 1100),
    releases: fc.boolean(),
  })
  test('whatever becomes of its round trips', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 15 }), async (steps) => {
        const { limiter, wait, script, release, expectCharged } = await createHalfUsed()
        for (const { fate, takes, gap, releases } of steps) {
          script(() => fate)
          await takeMany(limiter, takes)
          if (releases) release()
          await wait(gap)
        }
        script(() => healthy)
        release()
        await wait(3000)
        await limiter.close()
        expectCharged(steps.reduce((sum, { takes }) => sum + takes, 0))
      }),
      { seed, numRuns: 60 },
    )
  })

  test('or not at all when the store can no longer know: a minute later it makes no difference', async () => {
    const { limiter, wait, script, row } = await createHalfUsed()
    await wait(2000)
    script(() => lost)
    await takeMany(limiter, 5)
    script(() => refused)
    await wait(70_000)
    script(() => healthy)
    await wait(3000)
    await limiter.close()
    expect(row(bucketId)).toMatchObject({ total: limit * unit, leases: {} })
  })
})

test('a row forgets the reports of processes that are gone', async () => {
  const { createLimiter, wait, row } = createScriptedProcess()
  for (let i = 0; i < 20; i++) {
    await createLimiter().consume(one)
    await wait(10)
  }
  expect(Object.keys(row(bucketId).reports)).toHaveLength(20)
  await wait(60_000)
  await createLimiter().consume(one)
  expect(Object.keys(row(bucketId).reports)).toHaveLength(1)
})
