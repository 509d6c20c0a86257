import type { Clock, Random } from '../../ids.ts'
import type { Logger } from '../../telemetry.ts'
import { unit } from './bucket.ts'
import { createKnownBuckets } from './known-buckets.ts'
import { advance, busyMs, charge, decideAlone, decideHere, isDue, type LocalBucket } from './local-bucket.ts'
import { createOutage } from './outage.ts'
import type { RateLimiter } from './port.ts'
import { createRoundTrips } from './round-trips.ts'
import type { BucketStore } from './store.ts'
import { maxRunning, sweep, sweepMs } from './sweep.ts'

export type { RateLimiter, Taken, TakeRequest } from './port.ts'

export interface RateLimiterOptions {
  store: BucketStore
  random: Random
  logger: Logger
  /** Whole milliseconds of which only differences matter. Default: a clock of the process that is never set. */
  clock?: Clock
  /** Calls `run` every `ms` until the function it returned is called. Default: an interval that keeps nothing alive. */
  every?: (ms: number, run: () => void) => () => void
  /** A request waits no longer than about this for the store: real milliseconds, those of a stall not counted. */
  answerWithinMs?: number
  /** Buckets remembered of each key type. What is forgotten is given back. At most as many again wait for that. */
  maxBuckets?: number
}

/**
 * Token buckets shared by all processes with the same store (docs/architecture.md, Rate limits). A request is
 * decided here, without waiting, where this process holds units for it or knows that there are none; otherwise in a
 * round trip that all requests waiting for it share. What the store does not answer for, each process limits alone.
 */
export function createRateLimiter(options: RateLimiterOptions): RateLimiter {
  const { store, random, logger, clock = processClock, every = unrefInterval } = options
  const { answerWithinMs = 250, maxBuckets = 10_000 } = options
  const outage = createOutage({ clock, logger })
  const node = random(8).toString('hex')
  const trips = createRoundTrips({ store, node, clock, outage, answerWithinMs })
  const buckets = createKnownBuckets({ maxBuckets, isFlying: trips.isFlying })
  let isClosed = false

  async function leave(bucket: LocalBucket): Promise<void> {
    await trips.landed(bucket)
    if (!outage.isAway()) await trips.start(bucket, { leave: true })
  }

  const mustDecideAlone = (bucket: LocalBucket) =>
    isClosed || ((outage.isAway() || bucket.retryAt !== undefined) && !trips.hasWaiting(bucket))

  const stopSweeping = every(sweepMs, () => sweep({ buckets, trips, outage, clock }))

  return {
    take(request) {
      const now = clock()
      const bucket = buckets.find(request, now)
      advance(bucket, now)
      bucket.isBusy = now - bucket.usedAt < busyMs
      bucket.usedAt = now
      buckets.active.add(bucket)
      if (mustDecideAlone(bucket)) return decideAlone(bucket, request)
      const taken = trips.hasWaiting(bucket) ? undefined : decideHere(bucket, request)
      if (!taken) return trips.ask(bucket, request)
      if (isDue(bucket) && !trips.isFlying(bucket)) void trips.start(bucket)
      return taken
    },
    refund(request) {
      const bucket = buckets.peek(request)
      if (!bucket) return
      advance(bucket, clock())
      charge(bucket, -request.cost * unit)
      buckets.active.add(bucket)
    },
    async close() {
      stopSweeping()
      isClosed = true
      const left = [...buckets.active]
      while (left.length > 0) await Promise.all(left.splice(0, maxRunning).map(leave))
    },
  }
}

const processClock: Clock = () => Math.trunc(performance.now())

function unrefInterval(ms: number, run: () => void): () => void {
  const timer = setInterval(run, ms).unref()
  return () => clearInterval(timer)
}
