import type { LocalBucket } from './local-bucket.ts'
import { confirmMs, leaseMs, type Sync, type Synced } from './shared.ts'
import { joinSpending, reportOf, type Spending, settle } from './spending.ts'

/** What a process told the store and when, by its own clock. */
export interface Departure {
  told: Pick<Sync, 'limit' | 'report' | 'held'>
  spending: Spending | undefined
  sentAt: number
  /** What its requests took when they were decided here because the answer did not come. */
  asked?: Ended
}

/** Spending that ended at `at`. */
interface Ended {
  spending: Spending
  at: number
}

/** A report of which nobody knows whether it was charged. */
export interface Doubt {
  serial: number
  departure: Departure
}

/**
 * What the process tells the store now; from here on its spending begins anew. `exact`: nothing is decided here until
 * the answer, so what was held may count for the requests that wait. The bucket has been advanced.
 */
export function depart(bucket: LocalBucket, { exact }: { exact: boolean }): Departure {
  const { spending } = bucket
  if (exact) bucket.lease = 0
  bucket.spending = undefined
  bucket.hasDebt = false
  const departure = inquire(bucket)
  const report = spending && reportOf(spending, departure.sentAt)
  return { ...departure, told: { ...departure.told, report }, spending }
}

/** Tells the store nothing that it could charge. The bucket has been advanced. */
export function inquire(bucket: LocalBucket): Departure {
  const { limit, at: sentAt, leaseUntil } = bucket
  if (sentAt >= leaseUntil) bucket.lease = 0
  bucket.syncedAt = sentAt
  return { told: { limit, report: undefined, held: bucket.lease }, spending: undefined, sentAt }
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
 * Remembers what `decide` takes as taken by the requests of the round trip: the store may be charging them too, so it
 * must not go with the next report before it is known that it did not.
 */
export function chargeApart(bucket: LocalBucket, departure: Departure, decide: () => void): void {
  const { spending } = bucket
  bucket.spending = undefined
  decide()
  if (bucket.spending) departure.asked = { spending: bucket.spending, at: bucket.at }
  bucket.spending = spending
}

/** What the store has certainly not charged goes with the next report. The bucket has been advanced. */
export function keep(bucket: LocalBucket, { spending, sentAt, asked }: Departure): void {
  const { limit } = bucket
  const reported = spending && { spending, at: sentAt }
  const earlier =
    reported && asked ? { spending: joinSpending(limit, reported, asked), at: asked.at } : (reported ?? asked)
  if (!earlier) return
  bucket.spending = joinSpending(limit, earlier, { spending: bucket.spending, at: bucket.at })
  bucket.hasDebt = true
}

/** The answer was lost, so the store may have charged the report `serial` or not: nothing is reported until it said. */
export function doubt(bucket: LocalBucket, { serial, departure }: Doubt): void {
  if (!departure.spending && !departure.asked) return
  bucket.doubt = { serial, departure }
  bucket.hasDebt = true
}

/** Whether the store has to be asked about a report first. What it cannot know any more is given up. */
export function isInDoubt(bucket: LocalBucket): boolean {
  if (bucket.doubt && bucket.at - bucket.doubt.departure.sentAt >= confirmMs) bucket.doubt = undefined
  return bucket.doubt !== undefined
}

/** `serial` is the last report of this process that the store has charged. The bucket has been advanced. */
export function resolve(bucket: LocalBucket, serial: number | undefined): void {
  const { doubt } = bucket
  bucket.doubt = undefined
  if (doubt && doubt.serial !== serial) keep(bucket, doubt.departure)
}
