import {
  addUsage,
  applyUsage,
  type Bucket,
  type BucketRequest,
  charged,
  joinUsage,
  limited,
  noUsage,
  type RateLimitResult,
  refilled,
  refillUsage,
  type Usage,
  unit,
  usageReport,
} from './bucket.ts'
import { confirmMs, leaseMs, type SyncRequest, type SyncResult } from './shared-bucket.ts'

export const busyMs = 1000
export const reportMs = 100

/** What this process knows of a bucket and leases of it. Times are those of its own clock, amounts are in parts. */
export interface LocalBucket extends Bucket {
  readonly id: string
  isKnown: boolean
  lease: number
  leaseUntil: number
  lowWater: number
  /** Leased to other processes when this one last asked; void after `leaseUntil`. */
  reserved: number
  usage: Usage | undefined
  hasDebt: boolean
  unconfirmed: UnconfirmedReport | undefined
  /** While the store does not answer for this bucket: not before when it is asked again. */
  retryAt: number | undefined
  isForgotten: boolean
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
    usage: undefined,
    hasDebt: false,
    unconfirmed: undefined,
    retryAt: undefined,
    isForgotten: false,
    isBusy: false,
    usedAt: Number.NEGATIVE_INFINITY,
    syncedAt: Number.NEGATIVE_INFINITY,
  }
}

/** Refills up to `now`. Call before every other function here. A clock that steps back only stands still. */
export function advance(bucket: LocalBucket, now: number): void {
  const ms = now - bucket.at
  if (ms <= 0) return
  bucket.total = refilled(bucket.total, bucket.limit, ms)
  if (bucket.usage) refillUsage(bucket.usage, bucket.limit, ms)
  bucket.at = now
}

/** Subtracts parts, or gives back a negative number of them, and adds them to the next report. */
export function charge(bucket: LocalBucket, parts: number): void {
  bucket.total = charged(bucket.total, bucket.limit, parts)
  bucket.usage ??= noUsage(bucket.limit, bucket.at)
  addUsage(bucket.usage, bucket.limit, parts)
}

/** Decides where the lease suffices, or where the whole bucket cannot; else undefined: the store has to be asked. */
export function decideHere(bucket: LocalBucket, { limit, cost }: BucketRequest): RateLimitResult | undefined {
  if (!bucket.isKnown || bucket.limit !== limit) return undefined
  const parts = cost * unit
  const isLeased = bucket.at < bucket.leaseUntil
  if (isLeased && bucket.lease >= parts && bucket.total >= parts) return consume(bucket, cost, true)
  const free = isLeased ? bucket.total - bucket.reserved : bucket.total
  return free < parts ? consume(bucket, cost, false) : undefined
}

export function decideAlone(bucket: LocalBucket, { limit, cost }: BucketRequest): RateLimitResult {
  if (bucket.limit !== limit) Object.assign(bucket, limited(bucket, limit))
  return consume(bucket, cost, bucket.total >= cost * unit)
}

function consume(bucket: LocalBucket, cost: number, admitted: boolean): RateLimitResult {
  const parts = cost * unit
  charge(bucket, parts)
  bucket.lease = Math.max(0, bucket.lease - parts)
  if (!admitted) bucket.hasDebt = true
  return rateLimitResult({ admitted, limit: bucket.limit, total: bucket.total }, cost)
}

export function rateLimitResult(
  { admitted, limit, total }: { admitted: boolean; limit: number; total: number },
  cost: number,
): RateLimitResult {
  const missing = cost * unit - total
  const retryAfterSeconds = admitted ? 0 : Math.max(1, Math.ceil(missing / limit / 1000))
  return { admitted, limit, remaining: Math.max(0, Math.floor(total / unit)), cost, retryAfterSeconds }
}

export function isDue(bucket: LocalBucket): boolean {
  if (bucket.hasDebt) return bucket.at - bucket.syncedAt >= reportMs
  const hasMore = bucket.total - bucket.reserved >= bucket.lease + unit
  return bucket.lease <= bucket.lowWater && hasMore
}

export interface SentReport {
  sync: Pick<SyncRequest, 'limit' | 'report' | 'keptLease'>
  usage: Usage | undefined
  sentAt: number
  decidedHere?: EndedUsage
}

interface EndedUsage {
  usage: Usage
  at: number
}

export interface UnconfirmedReport {
  serial: number
  sent: SentReport
}

/**
 * The report for the store; the bucket's usage begins anew. `exact`: nothing is decided here until the answer, so the
 * lease may count for the requests that wait.
 */
export function startReport(bucket: LocalBucket, { exact }: { exact: boolean }): SentReport {
  const { usage } = bucket
  if (exact) bucket.lease = 0
  bucket.usage = undefined
  bucket.hasDebt = false
  const inquiry = startInquiry(bucket)
  const report = usage && usageReport(usage, inquiry.sentAt)
  return { ...inquiry, sync: { ...inquiry.sync, report }, usage }
}

export function startInquiry(bucket: LocalBucket): SentReport {
  const { limit, at: sentAt, leaseUntil } = bucket
  if (sentAt >= leaseUntil) bucket.lease = 0
  bucket.syncedAt = sentAt
  return { sync: { limit, report: undefined, keptLease: bucket.lease }, usage: undefined, sentAt }
}

export function applySynced(bucket: LocalBucket, { sync, sentAt }: SentReport, synced: SyncResult): void {
  const { usage, at } = bucket
  const report = usage && usageReport(usage, at)
  Object.assign(bucket, applyUsage({ ...synced.bucket, at: sentAt }, report, at))
  bucket.isKnown = true
  bucket.lease = Math.max(0, synced.lease - (sync.keptLease - bucket.lease))
  bucket.leaseUntil = sentAt + leaseMs
  bucket.lowWater = Math.floor(bucket.lease / 4)
  bucket.reserved = synced.reserved
}

/**
 * `decide` charges requests that the store may be charging too. Their usage is kept with the sent report, so that it is
 * reported again only once it is known that the store did not charge it.
 */
export function chargeSeparately(bucket: LocalBucket, sent: SentReport, decide: () => void): void {
  const { usage } = bucket
  bucket.usage = undefined
  decide()
  if (bucket.usage) sent.decidedHere = { usage: bucket.usage, at: bucket.at }
  bucket.usage = usage
}

export function reportAgain(bucket: LocalBucket, { usage, sentAt, decidedHere }: SentReport): void {
  const { limit } = bucket
  const reported = usage && { usage, at: sentAt }
  const earlier =
    reported && decidedHere
      ? { usage: joinUsage(limit, reported, decidedHere), at: decidedHere.at }
      : (reported ?? decidedHere)
  if (!earlier) return
  bucket.usage = joinUsage(limit, earlier, { usage: bucket.usage, at: bucket.at })
  bucket.hasDebt = true
}

/** The answer was lost. Nothing is reported until the store has said whether it charged the report. */
export function awaitConfirmation(bucket: LocalBucket, { serial, sent }: UnconfirmedReport): void {
  if (!sent.usage && !sent.decidedHere) return
  bucket.unconfirmed = { serial, sent }
  bucket.hasDebt = true
}

/** Whether the store has to be asked about a report first. A report that it cannot know any more is given up. */
export function hasUnconfirmed(bucket: LocalBucket): boolean {
  const { unconfirmed, at } = bucket
  if (unconfirmed && at - unconfirmed.sent.sentAt >= confirmMs) bucket.unconfirmed = undefined
  return bucket.unconfirmed !== undefined
}

export function confirm(bucket: LocalBucket, serial: number | undefined): void {
  const { unconfirmed } = bucket
  bucket.unconfirmed = undefined
  if (unconfirmed && unconfirmed.serial !== serial) reportAgain(bucket, unconfirmed.sent)
}
