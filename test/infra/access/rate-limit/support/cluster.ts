import type { RateLimitResult } from '../../../../../infra/access/rate-limit/limiter.ts'
import { createProcesses, requestOf } from './processes.ts'

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

/** Several processes with one store in virtual time; resolves once everything is answered and reported. */
export async function runCluster({ nodes, limit, arrivals, travelMs }: ClusterOptions) {
  const processes = createProcesses({ count: nodes, travel: (after) => after(travelMs()) })
  const { time, limiters } = processes
  const start = time.clock()
  const decided: Decided[] = []
  const take = async (arrival: Arrival) => {
    const answer = limiters[arrival.node]?.consume(requestOf('0', { limit, cost: arrival.cost }))
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
  await time.runUntil(start + (arrivals.at(-1)?.at ?? 0) + 4500)
  return { decided, statements: processes.statements() }
}
