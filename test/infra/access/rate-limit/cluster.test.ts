import { randomInt } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { amount } from '../../../support/long.ts'
import { type Arrival, type Decided, runCluster } from './support/cluster.ts'
import { createModel } from './support/model.ts'

const seed = Number(process.env.SEED ?? randomInt(2 ** 31))
console.log(`rate limiter, several processes: SEED=${seed}`)

const maxTravelMs = 20
const unitsOf = (some: { cost: number }[]) => some.reduce((sum, { cost }) => sum + cost, 0)
const admittedUnits = (decided: Decided[]) => unitsOf(decided.filter(({ taken }) => taken.admitted))

function modelUnits(limit: number, arrivals: Arrival[]): number {
  const model = createModel(limit, 0)
  return unitsOf(arrivals.filter(({ cost, at }) => model.request(cost, limit, at).admitted))
}

/** Evenly spread fractions 0..1 that follow from a number (Steele, Lea, Flood: SplittableRandom, the 32-bit variant). */
function createFractions(start: number): () => number {
  let state = start
  return () => {
    state = (state + 0x9e3779b9) | 0
    let mixed = Math.imul(state ^ (state >>> 16), 0x21f0aaad)
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97)
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 2 ** 32
  }
}
const draws = fc.integer().map((start) => ({ next: createFractions(start) }))

const cluster = fc.record({
  nodes: fc.integer({ min: 2, max: 5 }),
  limit: fc.constantFrom(50, 100, 600, 1000, 3000),
  draw: draws,
})

test('however requests arrive, all processes together admit no more than one bucket would', async () => {
  const arrivals = fc.record({
    count: fc.integer({ min: 1, max: 1500 }),
    spreadMs: fc.constantFrom(0, 500, 5000, 60_000),
  })
  let least = 1
  await fc.assert(
    fc.asyncProperty(cluster, arrivals, async ({ nodes, limit, draw }, { count, spreadMs }) => {
      const requests = Array.from({ length: count }, () => ({
        at: Math.floor(draw.next() * spreadMs),
        node: Math.floor(draw.next() ** 2 * nodes),
        cost: draw.next() < 0.1 ? 10 : 1,
      })).sort((a, b) => a.at - b.at)
      const travelMs = () => Math.floor(draw.next() * maxTravelMs)
      const { decided, reserved } = await runCluster({ nodes, limit, arrivals: requests, travelMs })
      expect(decided).toHaveLength(count)
      expect(reserved).toBe(0)
      // A bucket that only admitted requests are taken from; a decision shows by one journey later than it was made.
      let units = limit
      let last = 0
      for (const { taken, cost, decidedAt } of decided) {
        units =
          Math.min(limit, units + ((decidedAt - last) * limit) / 60_000) -
          (taken.admitted ? cost : 0)
        last = decidedAt
        least = Math.min(least, units / limit)
        expect(units).toBeGreaterThanOrEqual(-(limit * maxTravelMs) / 60_000)
      }
    }),
    { seed, numRuns: amount({ few: 20, many: 60 }) },
  )
  console.log(`least that was left: ${(100 * least).toFixed(2)} % of the limit`)
})

test('at 3 times the limit the processes together admit what one bucket would, within 1 %', async () => {
  let most = 0
  let least = 0
  const spreads = fc.constantFrom(0, 1000, 10_000, 60_000)
  await fc.assert(
    fc.asyncProperty(cluster, spreads, async ({ nodes, limit, draw }, spreadMs) => {
      const requests = Array.from({ length: 3 * limit }, () => ({
        at: Math.floor(draw.next() * spreadMs),
        node: Math.floor(draw.next() ** 2 * nodes),
        cost: 1,
      })).sort((a, b) => a.at - b.at)
      const travelMs = () => Math.floor(draw.next() * 4)
      const { decided } = await runCluster({ nodes, limit, arrivals: requests, travelMs })
      const expected = modelUnits(limit, requests)
      const difference = admittedUnits(decided) - expected
      expect(Math.abs(difference)).toBeLessThanOrEqual(Math.ceil(expected / 100) + 1)
      most = Math.max(most, difference / expected)
      least = Math.min(least, difference / expected)
    }),
    { seed, numRuns: amount({ few: 15, many: 40 }) },
  )
  console.log(`difference: ${(100 * least).toFixed(2)} % to +${(100 * most).toFixed(2)} %`)
})

test('requests take far fewer round trips than one each, however many there are', async () => {
  const limit = 20_000
  const requests = Array.from({ length: 3 * limit }, (_, i) => ({
    at: Math.floor(i / 5),
    node: i % 2,
    cost: 1,
  }))
  const { decided, roundTrips } = await runCluster({
    nodes: 2,
    limit,
    arrivals: requests,
    travelMs: () => 2,
  })
  const answeredAtOnce = decided.filter(({ at, decidedAt }) => at === decidedAt).length
  console.log(
    `${roundTrips} round trips for ${requests.length} requests, ${answeredAtOnce} answered at once`,
  )
  expect(roundTrips).toBeLessThan(600)
  expect(answeredAtOnce / requests.length).toBeGreaterThan(0.99)
})
