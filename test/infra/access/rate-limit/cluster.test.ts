import { randomInt } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { amount } from '../../../support/long.ts'
import { createModel, createProcesses, requestOf } from './support.ts'

const seed = Number(process.env.SEED ?? randomInt(2 ** 31))
console.log(`rate limiter, several processes: SEED=${seed}`)

/** A request; `at` is in milliseconds from the start. */
interface Arrival {
  at: number
  node: number
  cost: number
}

const unitsOf = (requests: Arrival[]) => requests.reduce((sum, { cost }) => sum + cost, 0)

/** Sends requests, in the order of time, to several processes with one store in virtual time. */
async function runCluster(
  limit: number,
  { nodes, arrivals, travelMs }: { nodes: number; arrivals: Arrival[]; travelMs: () => number },
) {
  const { time, limiters } = createProcesses({
    count: nodes,
    travel: (after) => after(travelMs()),
  })
  const start = time.clock()
  const decided: (Arrival & { admitted: boolean; decidedAt: number })[] = []
  const take = async (arrival: Arrival) => {
    const taken = await limiters[arrival.node]?.consume(
      requestOf('0', { limit, cost: arrival.cost }),
    )
    if (taken)
      decided.push({ ...arrival, admitted: taken.admitted, decidedAt: time.clock() - start })
  }
  const arrive = (index: number) => {
    const arrival = arrivals[index]
    if (!arrival) return
    time.at(start + arrival.at, () => {
      void take(arrival)
      arrive(index + 1)
    })
  }
  arrive(0)
  await time.runUntil(start + (arrivals.at(-1)?.at ?? 0) + 4500)
  expect(decided).toHaveLength(arrivals.length)
  return decided
}

test('processes that last saw a full bucket each admit less than a twentieth of it once it is empty', async () => {
  const [nodes, limit] = [4, 600]
  const burst = (at: number, node: number, count: number) =>
    Array.from({ length: count }, () => ({ at, node, cost: 1 }))
  const others = (at: number) => [1, 2, 3].flatMap((node) => burst(at, node, 100))
  const arrivals = [
    ...[0, 1, 2, 3].map((node) => ({ at: 0, node, cost: 1 })),
    ...burst(1000, 0, limit),
    ...others(1100),
    ...others(1500),
  ]
  const decided = await runCluster(limit, { nodes, arrivals, travelMs: () => 2 })
  const admitted = decided.filter((decision) => decision.admitted)
  // Units that the bucket gains until the last burst.
  const gained = (1500 * limit) / 60_000
  expect(admitted.length).toBeGreaterThan(limit + 2 * (limit / 20))
  expect(admitted.length).toBeLessThan(limit + 3 * (limit / 20) + gained)
  expect(admitted.filter(({ at }) => at === 1500)).toEqual([])
})

test('at 3 times the limit, processes admit as much as one bucket, plus at most a twentieth each', async () => {
  const cluster = fc.record({
    nodes: fc.integer({ min: 1, max: 5 }),
    limit: fc.constantFrom(10, 50, 100, 600, 1000, 3000),
    /** Cost of a tenth of the requests. */
    maxCost: fc.constantFrom(1, 10),
    spreadMs: fc.constantFrom(0, 1000, 10_000, 60_000),
    draw: fc.infiniteStream(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })),
  })
  await fc.assert(
    fc.asyncProperty(cluster, async ({ nodes, limit, maxCost, draw, spreadMs }) => {
      const drawn = () => draw.next().value
      const arrivals = Array.from({ length: 3 * limit }, () => ({
        at: Math.floor(drawn() * spreadMs),
        node: Math.floor(drawn() ** 2 * nodes),
        cost: drawn() < 0.1 ? maxCost : 1,
      })).sort((a, b) => a.at - b.at)
      const travelMs = () => Math.floor(drawn() * 4)
      const decided = await runCluster(limit, { nodes, arrivals, travelMs })
      const model = createModel(limit, 0)
      const expected = unitsOf(arrivals.filter(({ at, cost }) => model.request(cost, at).admitted))
      const difference = unitsOf(decided.filter(({ admitted }) => admitted)) - expected
      const overshoot = nodes === 1 ? 0 : (nodes * limit) / 20
      // A request is admitted or rejected as a whole.
      expect(difference).toBeLessThanOrEqual(overshoot + maxCost)
      expect(difference).toBeGreaterThanOrEqual(-Math.ceil(expected / 100) - maxCost)
    }),
    { seed, numRuns: amount({ few: 15, many: 40 }) },
  )
})
