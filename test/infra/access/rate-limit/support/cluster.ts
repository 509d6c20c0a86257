import { pino } from 'pino'
import type { RateLimitResult } from '../../../../../infra/access/rate-limit/bucket.ts'
import { createRateLimiter } from '../../../../../infra/access/rate-limit/limiter.ts'
import { createRandom } from '../../../../../infra/random.ts'
import { createMemoryStore } from './memory-store.ts'
import { createVirtualTime } from './virtual-time.ts'

export interface Arrival {
  /** Milliseconds from the start. */
  at: number
  node: number
  cost: number
}

export interface Decided extends Arrival {
  taken: RateLimitResult
  /** When the answer was there, on the clock of the arrivals. */
  decidedAt: number
}

export interface ClusterOptions {
  nodes: number
  limit: number
  /** In the order of time. */
  arrivals: Arrival[]
  /** Milliseconds that a message to or from the store takes, drawn in order. */
  travelMs: () => number
}

/** Several processes with one store in virtual time; resolves once everything is answered and given back. */
export async function runCluster({ nodes, limit, arrivals, travelMs }: ClusterOptions) {
  const time = createVirtualTime()
  const start = time.clock()
  const shared = createMemoryStore({ clock: time.clock, travel: () => time.after(travelMs()) })
  const limiters = Array.from({ length: nodes }, () =>
    createRateLimiter({
      store: shared.store,
      random: createRandom(),
      logger: pino({ level: 'silent' }),
      clock: time.clock,
      every: time.every,
      // However slow this machine is: nothing is lost in virtual time.
      answerWithinMs: 60_000,
    }),
  )
  const decided: Decided[] = []
  const take = async (arrival: Arrival) => {
    const request = { organizationId: 'org_0', keyType: 'secret', limit, cost: arrival.cost } as const
    const answer = limiters[arrival.node]?.consume(request)
    const taken = answer instanceof Promise ? await answer : answer
    if (taken) decided.push({ ...arrival, taken, decidedAt: time.clock() - start })
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
  await time.runUntil(start + (arrivals.at(-1)?.at ?? 0) + 3000)
  const leases = Object.values(shared.row('org_0:secret').leases)
  return {
    decided,
    roundTrips: shared.roundTrips(),
    leased: leases.reduce((sum, { parts }) => sum + parts, 0),
  }
}
