import { type Bucket, charged, limited, unit } from './bucket.ts'
import { type Report, settle } from './spending.ts'

/** How long a lease lasts that nobody renews or gives back: that of a process that died. */
export const leaseMs = 3000
/** A store remembers a report for so long. */
const rememberMs = 60_000
/**
 * So long after a report a process may ask whether it was charged. Later nobody knows, and it is not made again: a
 * bucket without debt is full once more by then.
 */
export const confirmMs = 50_000

/** Units set aside for one process, in parts. */
export interface Lease {
  parts: number
  /** Epoch milliseconds by the store's clock. */
  until: number
}

/** The last report of a process that was charged, so that it can find out when the answer was lost. */
export interface Reported {
  serial: number
  /** Epoch milliseconds by the store's clock. */
  until: number
}

/** The bucket of an organization and key type, as all processes share it. Leased units are still part of `total`. */
export interface SharedBucket extends Bucket {
  /** By node. A node that may lease stands here even while it holds nothing, so that it counts for the shares. */
  leases: Record<string, Lease>
  /** By node. */
  reports: Record<string, Reported>
}

export interface Ask {
  limit: number
  /** Whole units. */
  cost: number
}

/** What a process tells the shared bucket and asks of it in one round trip. */
export interface Sync {
  node: string
  /** The limit that the process believes in. */
  limit: number
  report: Report | undefined
  /** Number of the report together with the asks, never used before. Undefined: there are none. */
  serial: number | undefined
  /** Parts of its lease that it goes on using meanwhile. */
  held: number
  wantsLease: boolean
  /** Requests to decide, in the order of their arrival. */
  asks: Ask[]
}

export interface Decision {
  admitted: boolean
  limit: number
  /** Parts left. */
  total: number
}

export interface Synced {
  bucket: Bucket
  /** Parts that other processes hold. */
  reserved: number
  /** Parts that this process holds from now on, `held` included. */
  lease: number
  /** The last report of this process that was charged before this round trip. */
  serial: number | undefined
  decisions: Decision[]
}

/**
 * One round trip of a process with a shared bucket (undefined: new, full): settles its report, decides its requests
 * and renews its lease. What others hold is nobody else's, so all processes together never admit more than one
 * bucket would. `dbNow` is epoch milliseconds by the store's clock.
 */
export function synchronize(
  row: SharedBucket | undefined,
  sync: Sync,
  dbNow: number,
): { row: SharedBucket; synced: Synced } {
  const { node, limit, report, serial, asks } = sync
  const before = row ?? newRow(limit, dbNow - (report?.durationMs ?? 0))
  const now = notBefore(before.at, dbNow)
  const others = without(live(before.leases, now, leaseMs), node)
  const known = live(before.reports, now, rememberMs)
  const reserved = Object.values(others).reduce((sum, { parts }) => sum + parts, 0)
  let bucket = settle({ ...before, at: Math.min(before.at, now) }, report, now)
  const decisions = asks.map((ask) => {
    const { admitted, after } = decide(bucket, ask, reserved)
    bucket = after
    return { admitted, limit: bucket.limit, total: bucket.total }
  })
  const nodes = new Set([node, ...Object.keys(others), ...Object.keys(known)]).size
  const lease = Math.max(sync.held, sync.wantsLease ? grant(bucket, { nodes, reserved }) : 0)
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

function decide(bucket: Bucket, { limit, cost }: Ask, reserved: number) {
  const current = bucket.limit === limit ? bucket : limited(bucket, limit)
  const parts = cost * unit
  const admitted = current.total - reserved >= parts
  return { admitted, after: { ...current, total: charged(current.total, limit, parts) } }
}

/**
 * A fair share of the hundredth of the limit that may be leased at a time. Within this bound a process that holds
 * units without using them keeps them from others, so it is also the most that is refused too early. `nodes` counts
 * every process of the last minute: after a pause the first one to come back would else lease all of it, and the
 * others would have a round trip for every few requests until it is used up.
 */
function grant({ limit, total }: Bucket, { nodes, reserved }: { nodes: number; reserved: number }): number {
  const leasable = Math.floor(limit / 100)
  const share = Math.floor(leasable / nodes) * unit
  const available = Math.floor((total - reserved) / unit) * unit
  return Math.min(share, leasable * unit - reserved, available)
}
