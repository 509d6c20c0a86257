import { LRUCache } from 'lru-cache'
import type { KeyType } from '../../schemas/events.ts'
import type { Clock, OrganizationId, Random } from '../ids.ts'
import type { Logger } from '../telemetry.ts'
import { unit } from './bucket.ts'
import {
  advance,
  busyMs,
  charge,
  decideAlone,
  decideHere,
  isDue,
  type LocalBucket,
  localBucket,
} from './local-bucket.ts'
import { createOutage } from './outage.ts'
import type { RateLimiter, TakeRequest } from './port.ts'
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
  /** A request waits no longer than about this for the store, real milliseconds. */
  answerWithinMs?: number
  /** Buckets remembered of each key type. What is forgotten is given back. */
  maxBuckets?: number
}

/**
 * Token buckets shared by all processes with the same store (docs/architecture.md, Rate limits). A request is
 * decided here, without waiting, where this process holds units for it or knows that there are none; otherwise in a
 * round trip that all requests waiting for it share. While the store does not answer, each process limits alone.
 */
export function createRateLimiter(options: RateLimiterOptions): RateLimiter {
  const { store, random, logger, clock = processClock, every = unrefInterval } = options
  const { answerWithinMs = 250, maxBuckets = 10_000 } = options
  const outage = createOutage({ clock, logger })
  const node = random(8).toString('hex')
  const trips = createRoundTrips({ store, node, clock, outage, answerWithinMs })
  // Those that hold units or have something to report.
  const active = new Set<LocalBucket>()
  let isClosed = false

  function forget(bucket: LocalBucket): void {
    if (active.delete(bucket) && !isClosed) void leave(bucket)
  }

  async function leave(bucket: LocalBucket): Promise<void> {
    await trips.landed(bucket)
    if (!outage.isAway()) await trips.start(bucket, { leave: true })
  }

  const createMap = () =>
    new LRUCache<OrganizationId, LocalBucket>({ max: maxBuckets, dispose: (bucket) => forget(bucket) })
  const buckets: Record<KeyType, LRUCache<OrganizationId, LocalBucket>> = {
    secret: createMap(),
    publishable: createMap(),
  }

  function find({ organizationId, keyType, limit }: TakeRequest, now: number): LocalBucket {
    const known = buckets[keyType].get(organizationId)
    if (known) return known
    const bucket = localBucket(`${organizationId}:${keyType}`, limit, now)
    buckets[keyType].set(organizationId, bucket)
    return bucket
  }

  const stopSweeping = every(sweepMs, () => sweep({ active, trips, outage, clock }))

  return {
    take(request) {
      const now = clock()
      const bucket = find(request, now)
      advance(bucket, now)
      bucket.isBusy = now - bucket.usedAt < busyMs
      bucket.usedAt = now
      active.add(bucket)
      if (isClosed || (outage.isAway() && !trips.hasWaiting(bucket))) return decideAlone(bucket, request)
      const taken = trips.hasWaiting(bucket) ? undefined : decideHere(bucket, request)
      if (!taken) return trips.ask(bucket, request)
      if (isDue(bucket) && !trips.isFlying(bucket)) void trips.start(bucket)
      return taken
    },
    refund({ organizationId, keyType, cost }) {
      const bucket = buckets[keyType].get(organizationId)
      if (!bucket) return
      advance(bucket, clock())
      charge(bucket, -cost * unit)
      active.add(bucket)
    },
    async close() {
      stopSweeping()
      isClosed = true
      const left = [...active]
      while (left.length > 0) await Promise.all(left.splice(0, maxRunning).map(leave))
    },
  }
}

const processClock: Clock = () => Math.trunc(performance.now())

function unrefInterval(ms: number, run: () => void): () => void {
  const timer = setInterval(run, ms).unref()
  return () => clearInterval(timer)
}
