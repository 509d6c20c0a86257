import { LRUCache } from 'lru-cache'
import type { KeyType } from '../../../schemas/events.ts'
import type { Clock, OrganizationId, Random } from '../../ids.ts'
import type { Logger } from '../../telemetry.ts'
import { type RateLimitRequest, type RateLimitResult, unit } from './bucket.ts'
import {
  advance,
  busyMs,
  charge,
  decideAlone,
  decideHere,
  isDue,
  type LocalBucket,
  localBucket,
  reportMs,
} from './local-bucket.ts'
import type { BucketStore } from './shared-bucket.ts'
import { createStoreHealth, type StoreHealth } from './store-health.ts'
import { createSynchronizer, type Synchronizer } from './synchronizer.ts'

export interface RateLimiter {
  /** Answers at once where this process leases enough units, or knows that there are not enough. Never rejects. */
  consume(request: RateLimitRequest): RateLimitResult | Promise<RateLimitResult>
  refund(request: RateLimitRequest): void
  close(): Promise<void>
}

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
  /** Buckets remembered of each key type. A forgotten one is given back; at most as many again wait for that. */
  maxBuckets?: number
}

/**
 * Token buckets shared by all processes with the same store (docs/architecture.md, Rate limits). A request is decided
 * here, without waiting, where this process leases units for it or knows that there are none. Otherwise it is decided in
 * an exchange with the store that all waiting requests share. Where the store does not answer, each process limits alone.
 */
export function createRateLimiter(options: RateLimiterOptions): RateLimiter {
  const { store, random, logger, clock = processClock, every = unrefInterval } = options
  const { answerWithinMs = 250, maxBuckets = 10_000 } = options
  const health = createStoreHealth({ clock, logger })
  const node = random(8).toString('hex')
  const synchronizer = createSynchronizer({ store, node, clock, health, answerWithinMs })
  const buckets = createKnownBuckets({ maxBuckets, isRunning: synchronizer.isRunning })
  let isClosed = false

  async function release(bucket: LocalBucket): Promise<void> {
    await synchronizer.idle(bucket)
    if (!health.isDown()) await synchronizer.start(bucket, { release: true })
  }

  const mustDecideAlone = (bucket: LocalBucket) =>
    isClosed || ((health.isDown() || bucket.retryAt !== undefined) && !synchronizer.hasWaiting(bucket))

  const stopSweeping = every(sweepMs, () => sweep({ buckets, synchronizer, health, clock }))

  return {
    consume(request) {
      const now = clock()
      const bucket = buckets.find(request, now)
      advance(bucket, now)
      bucket.isBusy = now - bucket.usedAt < busyMs
      bucket.usedAt = now
      buckets.active.add(bucket)
      if (mustDecideAlone(bucket)) return decideAlone(bucket, request)
      const result = synchronizer.hasWaiting(bucket) ? undefined : decideHere(bucket, request)
      if (!result) return synchronizer.decide(bucket, request)
      if (isDue(bucket) && !synchronizer.isRunning(bucket)) void synchronizer.start(bucket)
      return result
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
      while (left.length > 0) await Promise.all(left.splice(0, maxRunning).map(release))
    },
  }
}

const processClock: Clock = () => Math.trunc(performance.now())

function unrefInterval(ms: number, run: () => void): () => void {
  const timer = setInterval(run, ms).unref()
  return () => clearInterval(timer)
}

interface KnownBucketsOptions {
  maxBuckets: number
  isRunning: (bucket: LocalBucket) => boolean
}

/**
 * The buckets that this process remembers. One that is forgotten while it leases units or has something to report stays
 * in `active` until the sweep has given that back. A request for it before then gets the same one again: two of one
 * process would give back each other's lease.
 */
function createKnownBuckets({ maxBuckets, isRunning }: KnownBucketsOptions) {
  const active = new Set<LocalBucket>()
  const forgotten = new Map<string, LocalBucket>()
  const createMap = () =>
    new LRUCache<OrganizationId, LocalBucket>({ max: maxBuckets, dispose: (bucket) => forget(bucket) })
  const known: Record<KeyType, LRUCache<OrganizationId, LocalBucket>> = {
    secret: createMap(),
    publishable: createMap(),
  }

  function forget(bucket: LocalBucket): void {
    if (!active.has(bucket)) return
    bucket.isForgotten = true
    forgotten.set(bucket.id, bucket)
    if (forgotten.size > 2 * maxBuckets) dropOldest()
  }

  function dropOldest(): void {
    for (const bucket of forgotten.values()) {
      if (isRunning(bucket)) continue
      remove(bucket)
      return
    }
  }

  function remove(bucket: LocalBucket): void {
    active.delete(bucket)
    forgotten.delete(bucket.id)
  }

  function create(id: string, { limit }: RateLimitRequest, now: number): LocalBucket {
    const bucket = forgotten.get(id) ?? localBucket(id, limit, now)
    forgotten.delete(id)
    bucket.isForgotten = false
    return bucket
  }

  return {
    /** Buckets that lease units or have something to report; the one that was swept last stands at the end. */
    active,
    find(request: RateLimitRequest, now: number): LocalBucket {
      const { organizationId, keyType } = request
      const found = known[keyType].get(organizationId)
      if (found) return found
      const bucket = create(idOf(request), request, now)
      known[keyType].set(organizationId, bucket)
      return bucket
    },
    peek: (request: RateLimitRequest): LocalBucket | undefined =>
      known[request.keyType].get(request.organizationId) ?? forgotten.get(idOf(request)),
    remove,
  }
}

const idOf = ({ organizationId, keyType }: RateLimitRequest) => `${organizationId}:${keyType}`

const sweepMs = 100
/** Exchanges in the background at once; more would only make requests wait for a connection. */
const maxRunning = 64

interface SweepOptions {
  buckets: ReturnType<typeof createKnownBuckets>
  synchronizer: Synchronizer
  health: StoreHealth
  clock: Clock
}

function sweep({ buckets, synchronizer, health, clock }: SweepOptions): void {
  const now = clock()
  for (const bucket of buckets.active) {
    if (synchronizer.running() >= maxRunning) return
    if (synchronizer.isRunning(bucket)) continue
    advance(bucket, now)
    const isIdle = bucket.isForgotten || now - bucket.usedAt >= busyMs
    if (isSettled(bucket)) buckets.remove(bucket)
    else if ((isIdle || isOverdue(bucket)) && health.mayTry(bucket)) {
      // Behind all others: one that always fails would else be the only one that is ever tried while the store is down.
      buckets.active.delete(bucket)
      buckets.active.add(bucket)
      void synchronizer.start(bucket, { release: isIdle })
    }
  }
}

const isSettled = ({ lease, usage, unconfirmed }: LocalBucket): boolean =>
  lease === 0 && !usage && !unconfirmed

function isOverdue({ at, syncedAt, hasDebt }: LocalBucket): boolean {
  return at - syncedAt >= (hasDebt ? reportMs : busyMs)
}
