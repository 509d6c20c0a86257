import type { Clock } from '../ids.ts'
import { within } from '../within.ts'
import { accept, depart, keep } from './journey.ts'
import { advance, answerOf, decideAlone, decideHere, type LocalBucket } from './local-bucket.ts'
import type { Outage } from './outage.ts'
import type { Taken } from './port.ts'
import { type Ask, synchronize } from './shared.ts'
import type { BucketStore } from './store.ts'

interface Waiting extends Ask {
  answer: (taken: Taken) => void
}

interface Start {
  /** The bucket is not used any more: its lease goes back. */
  leave?: boolean
  queue?: Waiting[]
}

interface Flight {
  /** What the next round trip will decide. */
  queue: Waiting[]
  /** How many requests the current one decides. */
  deciding: number
  done: Promise<void>
}

export interface RoundTripOptions {
  store: BucketStore
  node: string
  clock: Clock
  outage: Outage
  answerWithinMs: number
}

/** Round trips with the store: one at a time for each bucket; whoever needs one meanwhile shares the next. */
export function createRoundTrips({ store, node, clock, outage, answerWithinMs }: RoundTripOptions) {
  const flights = new Map<LocalBucket, Flight>()

  /** Never rejects. */
  function start(bucket: LocalBucket, { leave = false, queue = [] }: Start = {}): Promise<void> {
    const flight: Flight = { queue: [], deciding: queue.length, done: Promise.resolve() }
    flights.set(bucket, flight)
    flight.done = fly(bucket, { leave, asks: queue }).then((answered) => {
      flights.delete(bucket)
      if (!answered) return decideAllAlone(bucket, flight.queue)
      const rest = decideFirst(bucket, flight.queue)
      return rest.length > 0 ? start(bucket, { queue: rest }) : undefined
    })
    return flight.done
  }

  /** Whether the store answered. */
  async function fly(bucket: LocalBucket, { leave, asks }: { leave: boolean; asks: Waiting[] }) {
    advance(bucket, clock())
    const departure = depart(bucket, { exact: leave || asks.length > 0 })
    const wantsLease = bucket.isBusy && !leave
    const sync = {
      ...departure.told,
      node,
      wantsLease,
      asks: asks.map(({ limit, cost }) => ({ limit, cost })),
    }
    try {
      const change = store.update(bucket.id, (row, now) => {
        const { row: next, synced } = synchronize(row, sync, now)
        return { row: next, result: synced }
      })
      const synced = await within(change, answerWithinMs)
      accept(bucket, departure, synced)
      outage.answered()
      asks.forEach(({ cost, answer }, i) => {
        const decision = synced.decisions[i]
        if (decision) answer(answerOf(decision, cost))
      })
      return true
    } catch (error) {
      outage.failed(error)
      keep(bucket, departure)
      decideAllAlone(bucket, asks)
      return false
    }
  }

  /**
   * Uses the new lease for those that have waited behind the round trip; returns who still has to wait. Without this
   * a bucket in steady use would never again be free of waiting requests, and all would go by way of the store.
   */
  function decideFirst(bucket: LocalBucket, queue: Waiting[]): Waiting[] {
    advance(bucket, clock())
    for (const [i, waiting] of queue.entries()) {
      const taken = decideHere(bucket, waiting)
      if (!taken) return queue.slice(i)
      waiting.answer(taken)
    }
    return []
  }

  function decideAllAlone(bucket: LocalBucket, asks: Waiting[]): void {
    advance(bucket, clock())
    for (const ask of asks) ask.answer(decideAlone(bucket, ask))
  }

  return {
    start,
    /** Decides the request in the next round trip. */
    ask(bucket: LocalBucket, { limit, cost }: Ask): Promise<Taken> {
      const { promise, resolve } = Promise.withResolvers<Taken>()
      const waiting = { limit, cost, answer: resolve }
      const flight = flights.get(bucket)
      if (flight) flight.queue.push(waiting)
      else void start(bucket, { queue: [waiting] })
      return promise
    },
    isFlying: (bucket: LocalBucket) => flights.has(bucket),
    /** Whether requests wait for the exact answer: later ones then come after them. */
    hasWaiting(bucket: LocalBucket): boolean {
      const flight = flights.get(bucket)
      return flight !== undefined && flight.deciding + flight.queue.length > 0
    },
    running: () => flights.size,
    /** Resolves when no round trip of the bucket is on its way. */
    async landed(bucket: LocalBucket): Promise<void> {
      for (let flight = flights.get(bucket); flight; flight = flights.get(bucket)) await flight.done
    },
  }
}

export type RoundTrips = ReturnType<typeof createRoundTrips>
