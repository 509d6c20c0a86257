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
  nodes: fc.integer({ min: 1, max: 5 }),
  limit: fc.constantFrom(10, 50, 100, 600, 1000, 3000),
  draw: draws,
})
/** Units that processes may admit beyond the limit together. */
const beyond = (nodes: number, limit: number) => (nodes === 1 ? 0 : (nodes * limit) / 20)

/** Returns the least units that a bucket had left from which only admitted requests were taken. */
function leastLeft(limit: number, decided: Decided[]): number {
  let units = limit
  let least = limit
  let last = 0
  for (const { taken, cost, decidedAt } of decided) {
    units = Math.min(limit, units + ((decidedAt - last) * limit) / 60_000)
    if (taken.admitted) units -= cost
    last = decidedAt
    least = Math.min(least, units)
  }
  return least
}

test('in bursts too, one process admits no more than the limit, and n processes n twentieths more', async () => {
  const arrivals = fc.record({
    count: fc.integer({ min: 1, max: 1500 }),
    spreadMs: fc.constantFrom(0, 500, 5000, 60_000),
    bursts: fc.constantFrom(1, 3, 10, 10_000),
  })
  let least = 0
  await fc.assert(
    fc.asyncProperty(cluster, arrivals, async (drawn, { count, spreadMs, bursts }) => {
      const { nodes, limit, draw } = drawn
      // Each process knows the bucket before the first burst, which may come while it was not used for a while.
      const first = Array.from({ length: nodes }, (_, node) => ({ at: node, node, cost: 1 }))
      const requests = Array.from({ length: count }, () => ({
        at: 100 + Math.floor((Math.floor(draw.next() * bursts) / bursts) * spreadMs),
        node: Math.floor(draw.next() ** 2 * nodes),
        cost: Math.min(limit, draw.next() < 0.1 ? 10 : 1),
      })).sort((a, b) => a.at - b.at)
      const travelMs = () => Math.floor(draw.next() * maxTravelMs)
      const { decided } = await runCluster({
        nodes,
        limit,
        arrivals: [...first, ...requests],
        travelMs,
      })
      expect(decided).toHaveLength(nodes + count)
      // A decision shows by one journey later than it was made.
      const hidden = (limit * maxTravelMs) / 60_000
      const left = leastLeft(limit, decided)
      expect(left).toBeGreaterThanOrEqual(-beyond(nodes, limit) - hidden)
      if (nodes > 1) least = Math.min(least, left / limit / nodes)
    }),
    { seed, numRuns: amount({ few: 30, many: 150 }) },
  )
  console.log(`least that was left: ${(100 * least).toFixed(2)} % of the limit a process`)
})

test('processes that knew a full bucket each admit less than a twentieth of it once it is empty', async () => {
  const [nodes, limit] = [4, 600]
  const first = Array.from({ length: nodes }, (_, node) => ({ at: 0, node, cost: 1 }))
  const burst = (at: number, node: number, count: number) =>
    Array.from({ length: count }, () => ({ at, node, cost: 1 }))
  const { decided } = await runCluster({
    nodes,
    limit,
    arrivals: [
      ...first,
      ...burst(1000, 0, limit),
      ...[1, 2, 3].flatMap((node) => burst(1100, node, 100)),
      ...[1, 2, 3].flatMap((node) => burst(1500, node, 100)),
    ],
    travelMs: () => 2,
  })
  const beyondLimit = -leastLeft(limit, decided)
  expect(beyondLimit).toBeGreaterThan(2 * (limit / 20))
  expect(beyondLimit).toBeLessThan(3 * (limit / 20))
  expect(admittedUnits(decided.filter(({ at }) => at === 1500))).toBe(0)
})

test('at 3 times the limit the processes together admit what one bucket would, within the bounds', async () => {
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
      expect(difference).toBeLessThanOrEqual(beyond(nodes, limit) + 1)
      expect(difference).toBeGreaterThanOrEqual(-Math.ceil(expected / 100) - 1)
      most = Math.max(most, difference / expected)
      least = Math.min(least, difference / expected)
    }),
    { seed, numRuns: amount({ few: 15, many: 40 }) },
  )
  console.log(`difference: ${(100 * least).toFixed(2)} % to +${(100 * most).toFixed(2)} %`)
})

test('below the limit a process reports 20 times a second at most, and answers nearly all at once', async () => {
  const limit = 60_000
  const seconds = 10
  const requests = Array.from({ length: (limit / 60) * seconds }, (_, i) => ({
    at: Math.floor((i * 60_000) / limit),
    node: i % 2,
    cost: 1,
  }))
  const { decided, statements } = await runCluster({
    nodes: 2,
    limit,
    arrivals: requests,
    travelMs: () => 2,
  })
  const answeredAtOnce = decided.filter(({ at, decidedAt }) => at === decidedAt).length
  console.log(
    `${statements} statements for ${requests.length} requests, ${answeredAtOnce} answered at once`,
  )
  expect(statements).toBeLessThanOrEqual(2 * (20 * seconds + 5))
  expect(answeredAtOnce / requests.length).toBeGreaterThan(0.99)
})
