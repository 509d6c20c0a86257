import type { LocalBucket } from './local-bucket.ts'
import { leaseMs, type Sync, type Synced } from './shared.ts'
import { joinSpending, reportOf, type Spending, settle } from './spending.ts'

/** What a process told the store and when, by its own clock. */
export interface Departure {
  told: Pick<Sync, 'limit' | 'report' | 'held'>
  spending: Spending | undefined
  sentAt: number
}

/**
 * What the process tells the store now; from here on its spending begins anew. `exact`: nothing is decided here until
 * the answer, so what was held may count for the requests that wait. The bucket has been advanced.
 */
export function depart(bucket: LocalBucket, { exact }: { exact: boolean }): Departure {
  const { limit, at: sentAt, spending, leaseUntil } = bucket
  if (exact || sentAt >= leaseUntil) bucket.lease = 0
  bucket.spending = undefined
  bucket.hasDebt = false
  bucket.syncedAt = sentAt
  const report = spending && reportOf(spending, sentAt)
  return { told: { limit, report, held: bucket.lease }, spending, sentAt }
}

/** What the store said, plus what was taken here since it was asked. */
export function accept(bucket: LocalBucket, { told, sentAt }: Departure, synced: Synced): void {
  const { spending, at } = bucket
  const report = spending && reportOf(spending, at)
  Object.assign(bucket, settle({ ...synced.bucket, at: sentAt }, report, at))
  bucket.isKnown = true
  bucket.lease = Math.max(0, synced.lease - (told.held - bucket.lease))
  bucket.leaseUntil = sentAt + leaseMs
  bucket.lowWater = Math.floor(bucket.lease / 4)
  bucket.reserved = synced.reserved
}

/**
 * A report that nobody answered is made again with the next one. Where it had arrived all the same it counts twice:
 * better than not at all, and no more than what one round trip settles.
 */
export function keep(bucket: LocalBucket, { spending, sentAt }: Departure): void {
  if (!spending) return
  const later = { spending: bucket.spending, at: bucket.at }
  bucket.spending = joinSpending(bucket.limit, { spending, at: sentAt }, later)
  bucket.hasDebt = true
}
