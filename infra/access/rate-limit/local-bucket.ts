import { type Bucket, charged, limited, refilled, unit } from './bucket.ts'
import type { Doubt } from './journey.ts'
import type { Taken } from './port.ts'
import type { Ask } from './shared.ts'
import { addSpending, noSpending, refillSpending, type Spending } from './spending.ts'

/** Requests closer to each other than this make it worth holding units. */
export const busyMs = 1000
/** At most one report of a bucket's debt in this time. */
export const reportMs = 100

/** What this process knows of a bucket and holds of it. Times are those of its own clock, amounts are in parts. */
export interface LocalBucket extends Bucket {
  readonly id: string
  /** Whether `total` comes from the store. */
  isKnown: boolean
  lease: number
  leaseUntil: number
  /** Once no more than this is left of the lease, it is renewed. */
  lowWater: number
  /** What other processes held when this one last asked; void after `leaseUntil`. */
  reserved: number
  spending: Spending | undefined
  hasDebt: boolean
  /** The report that the store has to be asked about before the next one. */
  doubt: Doubt | undefined
  /** While the store does not answer for this bucket: not before when it is asked again. */
  retryAt: number | undefined
  /** Pushed out by others while it had something to give back. */
  isForgotten: boolean
  /** Whether the last two requests were close to each other. */
  isBusy: boolean
  usedAt: number
  syncedAt: number
}

export function localBucket(id: string, limit: number, now: number): LocalBucket {
  return {
    id,
    limit,
    total: limit * unit,
    at: now,
    isKnown: false,
    lease: 0,
    leaseUntil: now,
    lowWater: 0,
    reserved: 0,
    spending: undefined,
    hasDebt: false,
    doubt: undefined,
    retryAt: undefined,
    isForgotten: false,
    isBusy: false,
    usedAt: Number.NEGATIVE_INFINITY,
    syncedAt: Number.NEGATIVE_INFINITY,
  }
}

/** Refills up to `now`; a clock that steps back only stands still. */
export function advance(bucket: LocalBucket, now: number): void {
  const ms = now - bucket.at
  if (ms <= 0) return
  bucket.total = refilled(bucket.total, bucket.limit, ms)
  if (bucket.spending) refillSpending(bucket.spending, bucket.limit, ms)
  bucket.at = now
}

/** Takes parts away, or gives back a negative number of them, and remembers it for the next report. */
export function charge(bucket: LocalBucket, parts: number): void {
  bucket.total = charged(bucket.total, bucket.limit, parts)
  bucket.spending ??= noSpending(bucket.limit, bucket.at)
  addSpending(bucket.spending, bucket.limit, parts)
}

/**
 * Decides where no other process has to be asked: units held suffice, or the whole bucket cannot. Undefined
 * otherwise. The bucket has been advanced.
 */
export function decideHere(bucket: LocalBucket, { limit, cost }: Ask): Taken | undefined {
  if (!bucket.isKnown || bucket.limit !== limit) return undefined
  const parts = cost * unit
  const isLeased = bucket.at < bucket.leaseUntil
  if (isLeased && bucket.lease >= parts && bucket.total >= parts) return take(bucket, cost, true)
  const free = isLeased ? bucket.total - bucket.reserved : bucket.total
  return free < parts ? take(bucket, cost, false) : undefined
}

/** Decides as if no other process had the bucket, from what was last known of it. The bucket has been advanced. */
export function decideAlone(bucket: LocalBucket, { limit, cost }: Ask): Taken {
  if (bucket.limit !== limit) Object.assign(bucket, limited(bucket, limit))
  return take(bucket, cost, bucket.total >= cost * unit)
}

function take(bucket: LocalBucket, cost: number, admitted: boolean): Taken {
  const parts = cost * unit
  charge(bucket, parts)
  bucket.lease = Math.max(0, bucket.lease - parts)
  if (!admitted) bucket.hasDebt = true
  return answerOf({ admitted, limit: bucket.limit, total: bucket.total }, cost)
}

/** The answer when `total` parts are left. */
export function answerOf(
  { admitted, limit, total }: { admitted: boolean; limit: number; total: number },
  cost: number,
): Taken {
  const missing = cost * unit - total
  const retryAfterSeconds = admitted ? 0 : Math.max(1, Math.ceil(missing / limit / 1000))
  return { admitted, limit, remaining: Math.max(0, Math.floor(total / unit)), cost, retryAfterSeconds }
}

/** Whether a round trip in the background is worth it now that a request was decided here. */
export function isDue(bucket: LocalBucket): boolean {
  if (bucket.hasDebt) return bucket.at - bucket.syncedAt >= reportMs
  const hasMore = bucket.total - bucket.reserved >= bucket.lease + unit
  return bucket.lease <= bucket.lowWater && hasMore
}
