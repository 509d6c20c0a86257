import type { Clock } from '../../ids.ts'
import { createLru } from '../../lru.ts'
import {
  admitReserved,
  advance,
  applyAnswer,
  type Balance,
  type BucketName,
  bucketIdOf,
  decideByBalance,
  type LocalBucket,
  localBucket,
  mustRenew,
  owe,
  type RateLimitRequest,
  type RateLimitResult,
  type Report,
  startReport,
  unit,
} from './bucket.ts'

export interface RateLimiter {
  /**
   * Answers at once where this process has units reserved. It refuses only by a balance that was just read from the
   * store.
   */
  consume(request: RateLimitRequest): RateLimitResult | Promise<RateLimitResult>
  refund(request: RateLimitRequest): void
  /** Whole units that are left of the request's bucket, as far as this process knows; negative where it owes some. */
  remaining(request: RateLimitRequest): number
  close(): Promise<void>
}

/** Charges a report to the bucket that all processes share. Rejects when the store cannot be reached. */
export interface BucketStore {
  charge(report: Report): Promise<Balance>
}

export interface RateLimiterOptions {
  store: BucketStore
  /** Whole milliseconds of which only differences matter. Default: a clock of the process that is never set. */
  clock?: Clock
  /** Calls `run` every `ms` until the function it returned is called. Default: an interval that keeps nothing alive. */
  every?: (ms: number, run: () => void) => () => void
  /** Buckets remembered of each name. */
  maxBuckets?: number
}

interface Waiting {
  cost: number
  answer: (result: RateLimitResult) => void
  fail: (error: unknown) => void
}

interface KnownBucket extends LocalBucket {
  /** Requests that wait for the next round trip. */
  queue: Waiting[]
  roundTrips: Promise<void> | undefined
}

const sweepMs = 100
const busyMs = 1000
// Other processes spend in between, so an older balance would promise too short a wait. The sweep reads it more often
// while requests are refused.
const freshMs = 150

/**
 * Token buckets shared by all processes with the same store (docs/internals/architecture.md, Rate limits). Where the store does
 * not answer, requests that need it fail.
 */
export function createRateLimiter(options: RateLimiterOptions): RateLimiter {
  const { store, clock = processClock, every = unrefInterval, maxBuckets = 10_000 } = options
  const { find, active } = createKnownBuckets(maxBuckets)
  let isClosed = false
  let sweeping: Promise<void> | undefined

  function synchronize(bucket: KnownBucket): Promise<void> {
    bucket.roundTrips ??= roundTrips(bucket)
    return bucket.roundTrips
  }

  async function roundTrips(bucket: KnownBucket): Promise<void> {
    do await roundTrip(bucket)
    while (bucket.queue.length > 0)
    bucket.roundTrips = undefined
  }

  async function roundTrip(bucket: KnownBucket): Promise<void> {
    advance(bucket, bucket.limit, clock())
    const sentAt = bucket.at
    const waiting = bucket.queue.splice(0)
    const costs = waiting.map(({ cost }) => cost)
    const isIdle = isClosed || sentAt - bucket.usedAt >= busyMs
    const report = startReport(bucket, { costs, isIdle })
    try {
      const balance = await store.charge(report)
      advance(bucket, bucket.limit, clock())
      const results = applyAnswer(bucket, { ...balance, retained: report.retained, costs, sentAt })
      for (const [i, result] of results.entries()) waiting[i]?.answer(result)
      answerQueue(bucket)
    } catch (error) {
      // What was reported is not reported again, because it may have been charged.
      bucket.syncedAt = sentAt
      for (const { fail } of [...waiting, ...bucket.queue.splice(0)]) fail(error)
    }
  }

  // They are decided from the new reservation, because a bucket in steady use would else always have some that wait.
  function answerQueue(bucket: KnownBucket): void {
    const { queue } = bucket
    for (let first = queue[0]; first; first = queue[0]) {
      const result = decideByBalance(bucket, first.cost)
      if (!result) return
      queue.shift()
      first.answer(result)
    }
  }

  async function sweep(): Promise<void> {
    for (const bucket of [...active]) {
      if (bucket.roundTrips) continue
      const now = clock()
      const owes = bucket.owed !== 0
      if (!owes && bucket.reserved === 0) active.delete(bucket)
      else if (owes || now - bucket.syncedAt >= busyMs) await synchronize(bucket)
    }
  }

  const stopSweeping = every(sweepMs, () => {
    sweeping ??= sweep().finally(() => {
      sweeping = undefined
    })
  })

  async function release(bucket: KnownBucket): Promise<void> {
    await bucket.roundTrips
    await synchronize(bucket)
  }

  return {
    consume(request) {
      const { limit, cost } = request
      const now = clock()
      const bucket = find(request, now)
      advance(bucket, limit, now)
      bucket.isBusy = now - bucket.usedAt < busyMs
      bucket.usedAt = now
      active.add(bucket)
      const decide = now - bucket.syncedAt < freshMs ? decideByBalance : admitReserved
      const result = bucket.queue.length > 0 ? undefined : decide(bucket, cost)
      if (!result) {
        const { promise, resolve: answer, reject: fail } = Promise.withResolvers<RateLimitResult>()
        bucket.queue.push({ cost, answer, fail })
        void synchronize(bucket)
        return promise
      }
      if (result.admitted && mustRenew(bucket)) void synchronize(bucket)
      return result
    },
    refund(request) {
      const now = clock()
      const bucket = find(request, now)
      advance(bucket, request.limit, now)
      owe(bucket, -request.cost * unit)
      active.add(bucket)
    },
    remaining(request) {
      const now = clock()
      const bucket = find(request, now)
      advance(bucket, request.limit, now)
      return Math.floor((bucket.shared + bucket.reserved) / unit)
    },
    async close() {
      stopSweeping()
      isClosed = true
      await sweeping
      await Promise.all([...active].map(release))
    },
  }
}

const processClock: Clock = () => Math.trunc(performance.now())

function unrefInterval(ms: number, run: () => void): () => void {
  const timer = setInterval(run, ms).unref()
  return () => clearInterval(timer)
}

// The buckets of a process. `active` are those that have something reserved or owe something.
function createKnownBuckets(maxBuckets: number) {
  const active = new Set<KnownBucket>()
  // The sweep reports what a forgotten bucket owes, unless too many wait for that.
  const dispose = (bucket: KnownBucket) =>
    void (active.size > 3 * maxBuckets && active.delete(bucket))
  const createMap = () => createLru<RateLimitRequest['owner'], KnownBucket>(maxBuckets, { dispose })
  const known: Record<BucketName, ReturnType<typeof createMap>> = {
    secret: createMap(),
    publishable: createMap(),
    requests: createMap(),
    person: createMap(),
  }
  return {
    active,
    find({ owner, bucket: name, limit }: RateLimitRequest, now: number): KnownBucket {
      const found = known[name].get(owner)
      if (found) return found
      const local = localBucket(bucketIdOf(owner, name), limit, now)
      const bucket = { ...local, queue: [], roundTrips: undefined }
      known[name].set(owner, bucket)
      return bucket
    },
  }
}
