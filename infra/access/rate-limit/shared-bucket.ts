import { z } from 'zod'
import {
  applyUsage,
  type Bucket,
  type BucketRequest,
  charged,
  limited,
  type UsageReport,
  unit,
} from './bucket.ts'

/** The bucket of an organization and key type, as all processes share it. Leased units are still part of `total`. */
export interface SharedBucket extends Bucket {
  /** By node. A node that may lease stands here even while it has nothing, so that it counts for the shares. */
  leases: Record<string, Lease>
  /** By node: the last report that was charged, so that a process can ask when the answer was lost. */
  reports: Record<string, ChargedReport>
}

interface Lease {
  parts: number
  until: number
}

interface ChargedReport {
  serial: number
  until: number
}

export interface BucketChange<T> {
  row: SharedBucket
  result: T
}

export interface BucketStore {
  /**
   * Replaces the bucket (undefined: there is none yet) by what `change` makes of it, one change of a bucket at a
   * time over all processes. `now` is epoch milliseconds by a clock that all processes share. `change` is pure.
   * Rejects when the store cannot be reached. The change may then have happened or not, but only if `change` was
   * called, and never happens after a later change of the same bucket. Must settle: until then the bucket is not
   * asked for again.
   */
  update<T>(
    bucketId: string,
    change: (row: SharedBucket | undefined, now: number) => BucketChange<T>,
  ): Promise<T>
}

export interface SyncRequest {
  node: string
  limit: number
  report: UsageReport | undefined
  /** Number of the report together with the requests, never used before. Undefined: there are none. */
  serial: number | undefined
  keptLease: number
  wantsLease: boolean
  requests: BucketRequest[]
}

export interface SyncResult {
  bucket: Bucket
  reserved: number
  /** Parts that are leased to this process from now on, `keptLease` included. */
  lease: number
  serial: number | undefined
  decisions: BucketDecision[]
}

export interface BucketDecision {
  admitted: boolean
  limit: number
  total: number
}

export const leaseMs = 3000
const rememberMs = 60_000
/**
 * So long after a report a process may ask whether it was charged. Later nobody knows, and it is not made again: a
 * bucket without debt is full once more by then.
 */
export const confirmMs = 50_000

/**
 * Charges the report, decides the requests and renews the lease. Leases of others are nobody else's, so all processes
 * together never admit more than one bucket would. An undefined row is a new, full bucket. `dbNow` is epoch milliseconds
 * by the store's clock.
 */
export function synchronize(
  row: SharedBucket | undefined,
  sync: SyncRequest,
  dbNow: number,
): { row: SharedBucket; synced: SyncResult } {
  const { node, limit, report, serial, requests } = sync
  const before = row ?? newRow(limit, dbNow - (report?.durationMs ?? 0))
  const now = notBefore(before.at, dbNow)
  const others = without(live(before.leases, now, leaseMs), node)
  const known = live(before.reports, now, rememberMs)
  const reserved = Object.values(others).reduce((sum, { parts }) => sum + parts, 0)
  let bucket = applyUsage({ ...before, at: Math.min(before.at, now) }, report, now)
  const decisions = requests.map((request) => {
    const { admitted, after } = decide(bucket, request, reserved)
    bucket = after
    return { admitted, limit: bucket.limit, total: bucket.total }
  })
  const nodes = new Set([node, ...Object.keys(others), ...Object.keys(known)]).size
  const lease = Math.max(sync.keptLease, sync.wantsLease ? grant(bucket, { nodes, reserved }) : 0)
  const isKnown = lease > 0 || sync.wantsLease
  const leases = isKnown ? { ...others, [node]: { parts: lease, until: now + leaseMs } } : others
  const reports = serial === undefined ? known : { ...known, [node]: { serial, until: now + rememberMs } }
  const synced = { bucket, reserved, lease, serial: known[node]?.serial, decisions }
  return { row: { ...bucket, leases, reports }, synced }
}

const newRow = (limit: number, at: number): SharedBucket => {
  return { limit, total: limit * unit, at, leases: {}, reports: {} }
}

const clockStepMs = 1000

/** Time does not run backwards, unless the clock was set: waiting for it to catch up would mean no refill till then. */
function notBefore(at: number, dbNow: number): number {
  return dbNow < at && at - dbNow < clockStepMs ? at : dbNow
}

/** Entries that have not expired. One that would last longer than a new one is from before the clock was set back. */
function live<T extends { until: number }>(
  entries: Record<string, T>,
  now: number,
  lifeMs: number,
): Record<string, T> {
  return Object.fromEntries(
    Object.entries(entries).filter(([, { until }]) => until > now && until <= now + lifeMs),
  )
}

function without<T>(entries: Record<string, T>, node: string): Record<string, T> {
  return Object.fromEntries(Object.entries(entries).filter(([owner]) => owner !== node))
}

function decide(bucket: Bucket, { limit, cost }: BucketRequest, reserved: number) {
  const current = bucket.limit === limit ? bucket : limited(bucket, limit)
  const parts = cost * unit
  const admitted = current.total - reserved >= parts
  return { admitted, after: { ...current, total: charged(current.total, limit, parts) } }
}

/**
 * A fair share of the hundredth of the limit that may be leased at a time. A process that leases units without using
 * them keeps them from others, so the hundredth is also the most that is refused too early. `nodes` counts every process
 * of the last minute: after a pause the first one to come back would else lease all of it.
 */
function grant({ limit, total }: Bucket, { nodes, reserved }: { nodes: number; reserved: number }): number {
  const leasable = Math.floor(limit / 100)
  const share = Math.floor(leasable / nodes) * unit
  const available = Math.floor((total - reserved) / unit) * unit
  return Math.min(share, leasable * unit - reserved, available)
}

const until = z.number()
const bucketSchema = z.object({
  limit: z.number().positive(),
  total: z.number(),
  at: z.number(),
  leases: z.record(z.string(), z.object({ parts: z.number(), until })),
  reports: z.record(z.string(), z.object({ serial: z.number(), until })).default({}),
})

export function readBucket(text: string): SharedBucket | undefined {
  try {
    return bucketSchema.parse(JSON.parse(text))
  } catch {
    return undefined
  }
}
