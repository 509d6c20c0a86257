import { randomInt } from 'node:crypto'
import { setImmediate as settled } from 'node:timers/promises'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { unit } from '../../../../infra/access/rate-limit/bucket.ts'
import { amount } from '../../../support/long.ts'
import type { Fate } from './support/memory-store.ts'
import { createProcesses, requestOf, takeMany } from './support/processes.ts'

const seed = Number(process.env.SEED ?? randomInt(2 ** 31))
console.log(`rate limiter, outages: SEED=${seed}`)

const warned = 40
const informed = 30
const limit = 600
const bucketId = 'org_a:secret'
const one = requestOf('a')

test('a process that stood still longer than a request waits does not mistake that for an outage', async () => {
  const inParts = async () => {
    for (let part = 0; part < 3; part++) await settled()
  }
  const { limiter, lines, roundTrips } = createProcesses({ answerWithinMs: 50, travel: inParts })
  const taken = limiter.consume(one)
  const end = performance.now() + 75
  while (performance.now() < end);
  expect(await taken).toMatchObject({ admitted: true, remaining: 599 })
  expect(roundTrips()).toBe(1)
  expect(lines).toEqual([])
})

test('without an answer in time a request is decided alone, and those after it do not wait', async () => {
  const { limiter, lines, script, release, roundTrips } = createProcesses({ answerWithinMs: 5 })
  await takeMany(limiter, 1, one)
  script(() => 'late')
  expect(await limiter.consume(one)).toMatchObject({ admitted: true, remaining: 598 })
  const before = roundTrips()
  for (const name of ['a', 'b', 'c'])
    expect(limiter.consume(requestOf(name))).toMatchObject({ admitted: true })
  expect(roundTrips()).toBe(before)
  expect(lines).toMatchObject([{ level: warned }])
  release()
})

test('alone a process limits, too', async () => {
  const { limiter, script } = createProcesses({ answerWithinMs: 5 })
  script(() => 'refused')
  const all = await takeMany(limiter, 700, one)
  expect(all.filter(({ admitted }) => admitted)).toHaveLength(limit)
})

test('while the store is away it is asked once a second, and an outage ends with the first answer', async () => {
  const { limiter, lines, script, wait, roundTrips } = createProcesses({ answerWithinMs: 5 })
  script(() => 'refused')
  for (const name of ['held', 'b', 'c']) await takeMany(limiter, 2, requestOf(name))
  const before = roundTrips()
  for (let i = 0; i < 100; i++) await wait(100)
  expect(roundTrips() - before).toBeLessThanOrEqual(10)
  expect(roundTrips() - before).toBeGreaterThanOrEqual(8)
  script((id) => (id === 'org_held:secret' ? 'refused' : 'healthy'))
  for (let i = 0; i < 22; i++) await wait(100)
  expect(lines.slice(0, 2).map(({ level }) => level)).toEqual([warned, informed])
})

test('what was spent during an outage is charged when it is over', async () => {
  const { limiters, script, wait } = createProcesses({ count: 2, answerWithinMs: 5 })
  script(() => 'refused')
  await takeMany(limiters[0], 2, one)
  for (let i = 0; i < 50; i++) {
    await takeMany(limiters[0], 10, one)
    await wait(10)
  }
  script(() => 'healthy')
  for (let i = 0; i < 15; i++) await wait(100)
  const [seen] = await takeMany(limiters[1], 1, one)
  // About 500 were spent, and no more than 20 refilled.
  expect(seen?.remaining).toBeLessThanOrEqual(limit - 500 + 25)
})

const fates = fc.constantFrom<Fate>('healthy', 'healthy', 'late', 'lost', 'refused')
const step = fc.record({
  fate: fates,
  takes: fc.integer({ min: 0, max: 4 }),
  gap: fc.constantFrom(0, 50, 300, 1100),
  releases: fc.boolean(),
})

test('nothing is charged twice, whatever becomes of round trips', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 15 }), async (steps) => {
      const { limiter, script, release, wait, row, time } = createProcesses({ answerWithinMs: 5 })
      // Half is used, so that no refill is lost to a full bucket.
      await takeMany(limiter, 1, requestOf('a', { cost: limit / 2 }))
      const since = time.clock()
      let taken = 0
      for (const { fate, takes, gap, releases } of steps) {
        script(() => fate)
        await takeMany(limiter, takes, one)
        taken += takes
        if (releases) release()
        await wait(gap)
      }
      script(() => 'healthy')
      release()
      for (let i = 0; i < 3; i++) await wait(1000)
      await limiter.close()
      const { parts = 0, at = 0 } = row(bucketId) ?? {}
      const lostReservations = steps.length * 6
      const left = Math.min(limit, limit / 2 + (limit * (at - since)) / (60 * 1000))
      expect(parts / unit).toBeGreaterThanOrEqual(left - taken - lostReservations)
      expect(parts / unit).toBeLessThanOrEqual(left)
    }),
    { seed, numRuns: amount({ few: 60, many: 200 }) },
  )
})
