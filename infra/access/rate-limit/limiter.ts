import type { KeyType } from '../../../schemas/events.ts'
import { createBatcher } from '../../flow/batcher.ts'
import type { Clock, ConsoleSessionId, OrganizationId } from '../../ids.ts'
import { createLru } from '../../lru.ts'

/**
 * An organization's keys of one type share a bucket. Requests sent for scoring (`requests`) and each console session
 * (`person`) have their own.
 */
export type BucketName = KeyType | 'requests' | 'person'

type Owner = OrganizationId | ConsoleSessionId

export const bucketIdOf = (owner: Owner, bucket: BucketName): string => `${owner}:${bucket}`

export interface RateLimitRequest {
  owner: Owner
  bucket: BucketName
  /** Units per 60 seconds, at least 1; also the capacity of the bucket. */
  limit: number
  cost: number
}

export interface RateLimitResult {
  admitted: boolean
  limit: number
  remaining: number
  cost: number
  /** Whole seconds until the same request would be admitted, at least 1; 0 if it was admitted. */
  retryAfterSeconds: number
}

export interface RateLimiter {
  /** Admits locally, by the last balance, while little is unreported; else asks the store. Only the store refuses. */
  consume(request: RateLimitRequest): RateLimitResult | Promise<RateLimitResult>
  refund(request: RateLimitRequest): void
  /** Returns the whole units left in the bucket as far as this process knows; negative for a debt. */
  remaining(request: RateLimitRequest): number
  /** Reports the remaining spent units. */
  close(): Promise<void>
}

/**
 * Balances are in parts of a unit: a bucket of `limit` units per 60 seconds refills by `limit` parts a millisecond, so
 * all arithmetic is in integers, exact up to a limit of 10^11.
 */
export const partsPerUnit = 60_000

export interface Report {
  bucketId: string
  limit: number
  /** Parts; negative when more was refunded than spent. */
  charge: number
}

export interface BucketStore {
  /**
   * Charges buckets that all processes share, each at most once per call. Returns the balances in parts, in the order
   * of the reports. Until the next charge, a balance can be above the capacity (`limit` * `partsPerUnit`) or below
   * minus the capacity. Rejects if the store is unreachable.
   */
  charge(reports: Report[]): Promise<number[]>
}

export interface RateLimiterOptions {
  store: BucketStore
  /** Whole milliseconds; only differences matter. Default: the process's monotonic clock. */
  clock?: Clock
  /** Calls `run` every `ms` until the returned function is called. Default: an unref'd interval. */
  every?: (ms: number, run: () => void) => () => void
  maxBuckets?: number
}

interface Bucket {
  readonly id: string
  limit: number
  /** The store's last balance, by the clock of this process; undefined before the first one and after a failure. */
  balance: { parts: number; at: number } | undefined
  /** Parts spent here that `balance` does not include yet; negative if more was refunded. */
  unreported: number
}

/** A request that waits for the store. A cost of 0 only reports. */
interface PendingRequest {
  bucket: Bucket
  cost: number
}

/** Row of a bucket in a statement. */
interface Charge {
  bucket: Bucket
  /** Portion of `charge` that pending requests asked for. Both are in parts of a unit. */
  pendingParts: number
  charge: number
}

const reportMs = 50
// Share of the limit that a process may admit before it reports: n processes overshoot by at most n/20.
const maxUnreported = 1 / 20

/** Creates token buckets shared by all processes with the same store (docs/internals/architecture.md, Rate limits). */
export function createRateLimiter(options: RateLimiterOptions): RateLimiter {
  const { store, clock = processClock, every = unrefInterval, maxBuckets = 40_000 } = options
  const recent = createLru<string, Bucket>(maxBuckets)
  // By id: `recent` may evict a bucket before it is reported, and a statement can name a bucket only once.
  const dirty = new Map<string, Bucket>()
  const statements = createBatcher({ runBatch: write, maxItems: Number.POSITIVE_INFINITY })
  let reporting: Promise<void> | undefined

  async function write(pending: PendingRequest[]): Promise<RateLimitResult[]> {
    const charges = startCharges(pending)
    for (const { bucket } of charges) dirty.delete(bucket.id)
    let balances: number[] = []
    try {
      balances = await store.charge(
        charges.map(({ bucket: { id, limit }, charge }) => ({ bucketId: id, limit, charge })),
      )
    } finally {
      settle(charges, balances, clock())
    }
    return decideInOrder(pending, balancesBefore(charges, balances))
  }

  async function chargeStore(pending: PendingRequest): Promise<RateLimitResult> {
    const [result] = await statements.run([pending])
    if (!result)
      throw new Error(`the store returned no result for rate-limit bucket ${pending.bucket.id}`)
    return result
  }

  async function report(): Promise<void> {
    const reports = [...dirty.values()].map((bucket) => ({ bucket, cost: 0 }))
    await statements.run(reports).catch(() => undefined)
  }

  const stopReporting = every(reportMs, () => {
    if (dirty.size === 0) return
    reporting ??= report().finally(() => {
      reporting = undefined
    })
  })

  function bucketOf({ owner, bucket: name, limit }: RateLimitRequest): Bucket {
    const id = bucketIdOf(owner, name)
    const existing = recent.get(id)
    if (existing) return existing
    const bucket = dirty.get(id) ?? { id, limit, balance: undefined, unreported: 0 }
    recent.set(id, bucket)
    return bucket
  }

  return {
    consume(request) {
      const { limit, cost } = request
      const bucket = bucketOf(request)
      // The store clips the balance to a lower limit.
      if (bucket.limit !== limit) bucket.balance = undefined
      bucket.limit = limit
      dirty.set(bucket.id, bucket)
      const unreported = bucket.unreported + cost * partsPerUnit
      const parts = partsLeft(bucket, limit, clock()) - cost * partsPerUnit
      if (!bucket.balance || parts < 0 || unreported >= limit * partsPerUnit * maxUnreported)
        return chargeStore({ bucket, cost })
      bucket.unreported = unreported
      return resultOf({ limit, cost, parts })
    },
    refund(request) {
      const bucket = bucketOf(request)
      const free = request.limit * partsPerUnit - partsLeft(bucket, request.limit, clock())
      bucket.unreported -= Math.min(request.cost * partsPerUnit, free)
      dirty.set(bucket.id, bucket)
    },
    remaining: (request) =>
      Math.floor(partsLeft(bucketOf(request), request.limit, clock()) / partsPerUnit),
    async close() {
      stopReporting()
      await reporting
      await report()
    },
  }
}

/** Sums the pending requests by bucket and counts them as spent until the store responds. */
function startCharges(pending: PendingRequest[]): Charge[] {
  return [...Map.groupBy(pending, ({ bucket }) => bucket)].map(([bucket, requests]) => {
    const pendingParts = requests.reduce((sum, { cost }) => sum + cost * partsPerUnit, 0)
    bucket.unreported += pendingParts
    return { bucket, pendingParts, charge: bucket.unreported }
  })
}

/** Sets the new balances; clears them after a failure. A failed statement may have charged, so it is not retried. */
function settle(charges: Charge[], balances: number[], at: number): void {
  for (const [i, { bucket, charge }] of charges.entries()) {
    const parts = balances[i]
    bucket.unreported -= charge
    bucket.balance = parts === undefined ? undefined : { parts, at }
  }
}

/** Returns the parts that each bucket had before the pending requests. */
function balancesBefore(charges: Charge[], balances: number[]): Map<Bucket, number> {
  return new Map(
    charges.map(({ bucket, pendingParts }, i) => [
      bucket,
      Math.min(bucket.limit * partsPerUnit, (balances[i] ?? 0) + pendingParts),
    ]),
  )
}

function decideInOrder(pending: PendingRequest[], left: Map<Bucket, number>): RateLimitResult[] {
  return pending.map(({ bucket, cost }) => {
    const parts = (left.get(bucket) ?? 0) - cost * partsPerUnit
    left.set(bucket, parts)
    return resultOf({ limit: bucket.limit, cost, parts })
  })
}

/** Returns the parts left in a bucket as far as this process knows. A clock that steps back refills nothing. */
function partsLeft({ balance, unreported }: Bucket, limit: number, now: number): number {
  const full = limit * partsPerUnit
  if (!balance) return full - unreported
  const { parts, at } = balance
  const refilled = Math.max(-full, parts) + limit * Math.max(0, now - at)
  return Math.min(full, refilled) - unreported
}

/** Converts the parts left after a charge into a result. */
function resultOf({
  limit,
  cost,
  parts,
}: Pick<RateLimitResult, 'limit' | 'cost'> & { parts: number }): RateLimitResult {
  const admitted = parts >= 0
  // A refused request is charged too, so a retry needs the debt repaid and its own cost.
  const missing = cost * partsPerUnit - Math.max(-limit * partsPerUnit, parts)
  const retryAfterSeconds = admitted ? 0 : Math.max(1, Math.ceil(missing / limit / 1000))
  const remaining = Math.min(limit, Math.max(0, Math.floor(parts / partsPerUnit)))
  return { admitted, limit, remaining, cost, retryAfterSeconds }
}

const processClock: Clock = () => Math.trunc(performance.now())

function unrefInterval(ms: number, run: () => void): () => void {
  const timer = setInterval(run, ms).unref()
  return () => clearInterval(timer)
}
