import type { Clock } from '../../ids.ts'
import type { KnownBuckets } from './known-buckets.ts'
import { advance, busyMs, type LocalBucket, reportMs } from './local-bucket.ts'
import type { Outage } from './outage.ts'
import type { RoundTrips } from './round-trips.ts'

export const sweepMs = 100
/** So many round trips in the background at once; more would only make requests wait for a connection. */
export const maxRunning = 64

export interface SweepOptions {
  buckets: KnownBuckets
  trips: RoundTrips
  outage: Outage
  clock: Clock
}

/**
 * Reports debt, gives back leases that are not used any more, and renews others long before they expire. Goes over
 * the buckets in use alone, with one timer for all of them, and each time begins with those it left out last.
 */
export function sweep({ buckets, trips, outage, clock }: SweepOptions): void {
  const now = clock()
  for (const bucket of buckets.active) {
    if (trips.running() >= maxRunning) return
    if (trips.isFlying(bucket)) continue
    advance(bucket, now)
    const isIdle = bucket.isForgotten || now - bucket.usedAt >= busyMs
    if (isSettled(bucket)) buckets.settled(bucket)
    else if ((isIdle || isOverdue(bucket)) && outage.mayAsk(bucket)) {
      // Behind all others: one that always fails would else be the only one that is ever tried during an outage.
      buckets.active.delete(bucket)
      buckets.active.add(bucket)
      void trips.start(bucket, { leave: isIdle })
    }
  }
}

const isSettled = ({ lease, spending, doubt }: LocalBucket): boolean => lease === 0 && !spending && !doubt

function isOverdue({ at, syncedAt, hasDebt }: LocalBucket): boolean {
  return at - syncedAt >= (hasDebt ? reportMs : busyMs)
}
