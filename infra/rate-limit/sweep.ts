import type { Clock } from '../ids.ts'
import { advance, busyMs, type LocalBucket, reportMs } from './local-bucket.ts'
import type { Outage } from './outage.ts'
import type { RoundTrips } from './round-trips.ts'

export const sweepMs = 100
/** So many round trips in the background at once; more would only make requests wait for a connection. */
export const maxRunning = 64

export interface SweepOptions {
  active: Set<LocalBucket>
  trips: RoundTrips
  outage: Outage
  clock: Clock
}

/**
 * Reports debt, gives back leases that are not used any more, and renews others long before they expire. Goes over
 * the buckets in use alone, with one timer for all of them.
 */
export function sweep({ active, trips, outage, clock }: SweepOptions): void {
  const now = clock()
  for (const bucket of active) {
    if (trips.running() >= maxRunning) return
    if (trips.isFlying(bucket)) continue
    advance(bucket, now)
    const isIdle = now - bucket.usedAt >= busyMs
    if (isSettled(bucket)) active.delete(bucket)
    else if (isIdle || isOverdue(bucket)) {
      if (!outage.mayAsk()) return
      void trips.start(bucket, { leave: isIdle })
    }
  }
}

const isSettled = ({ lease, spending }: LocalBucket): boolean => lease === 0 && !spending

function isOverdue({ at, syncedAt, hasDebt }: LocalBucket): boolean {
  return at - syncedAt >= (hasDebt ? reportMs : busyMs)
}
