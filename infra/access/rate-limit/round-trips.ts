import type { Clock } from '../../ids.ts'
import { settlesWithin } from './deadline.ts'
import { arrive, type Flight, fail, inquiry, send, visit, type Waiting } from './flight.ts'
import { chargeApart, isInDoubt } from './journey.ts'
import { advance, decideAlone, decideHere, type LocalBucket } from './local-bucket.ts'
import type { Outage } from './outage.ts'
import type { Taken } from './port.ts'
import type { Ask } from './shared.ts'
import type { BucketStore } from './store.ts'

interface Start {
  /** The bucket is not used any more: its lease goes back. */
  leave?: boolean
  queue?: Waiting[]
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
  let serials = 0
  const nextSerial = () => ++serials

  /** Resolves when the store is done with it, even if it was too late for those that waited. Never rejects. */
  function start(bucket: LocalBucket, { leave = false, queue = [] }: Start = {}): Promise<void> {
    advance(bucket, clock())
    const isInquiry = isInDoubt(bucket)
    const flight = isInquiry ? inquiry(bucket, queue) : visit(bucket, { leave, asks: queue, nextSerial })
    flights.set(bucket, flight)
    flight.done = fly(bucket, flight).then((answered) => {
      flights.delete(bucket)
      if (!answered) return undefined
      const rest = decideFirst(bucket, flight.queue)
      const mustLeave = leave && isInquiry
      return rest.length > 0 || mustLeave ? start(bucket, { leave: mustLeave, queue: rest }) : undefined
    })
    return flight.done
  }

  /**
   * Whether the store answered in time. Those that wait are answered in time in any case, but the bucket is not asked
   * for again, and nothing is put back into the next report, before it is settled what became of this one.
   */
  async function fly(bucket: LocalBucket, flight: Flight): Promise<boolean> {
    const { change, hasRun } = send(bucket, flight, { store, node })
    const isInTime = await settlesWithin(change, answerWithinMs)
    if (!isInTime) giveUp(bucket, flight, new Error(`no answer within ${answerWithinMs} ms`))
    try {
      const synced = await change
      advance(bucket, clock())
      arrive(bucket, flight, synced)
      if (isInTime) outage.answered(bucket)
      else outage.postpone(bucket)
      return isInTime
    } catch (error) {
      if (isInTime) giveUp(bucket, flight, error)
      else outage.postpone(bucket)
      advance(bucket, clock())
      fail(bucket, flight, hasRun())
      return false
    }
  }

  /** Nobody waits for the store any longer. */
  function giveUp(bucket: LocalBucket, flight: Flight, error: unknown): void {
    outage.failed(bucket, error)
    advance(bucket, clock())
    chargeApart(bucket, flight.departure, () => decideAllAlone(bucket, flight.asks.splice(0)))
    decideAllAlone(bucket, flight.queue.splice(0))
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
    for (const ask of asks) ask.answer(decideAlone(bucket, ask))
  }

  return {
    start,
    /** Decides the request in the next round trip. */
    ask(bucket: LocalBucket, { limit, cost }: Ask): Promise<Taken> {
      const { promise, resolve: answer } = Promise.withResolvers<Taken>()
      const waiting = { limit, cost, answer }
      const flight = flights.get(bucket)
      if (flight) flight.queue.push(waiting)
      else void start(bucket, { queue: [waiting] })
      return promise
    },
    isFlying: (bucket: LocalBucket) => flights.has(bucket),
    /** Whether requests wait for the exact answer: later ones then come after them. */
    hasWaiting(bucket: LocalBucket): boolean {
      const flight = flights.get(bucket)
      return flight !== undefined && flight.asks.length + flight.queue.length > 0
    },
    running: () => flights.size,
    /** Resolves when no round trip of the bucket is on its way. */
    async landed(bucket: LocalBucket): Promise<void> {
      for (let flight = flights.get(bucket); flight; flight = flights.get(bucket)) await flight.done
    },
  }
}

export type RoundTrips = ReturnType<typeof createRoundTrips>
