import { type Bucket, charged, limited, unit } from './bucket.ts'
import { type Report, settle } from './spending.ts'

/** How long a lease lasts that nobody renews or gives back: that of a process that died. */
export const leaseMs = 3000

/** Units set aside for one process, in parts. */
export interface Lease {
  parts: number
  /** Epoch milliseconds by the store's clock. */
  until: number
}

/** The bucket of an organization and key type, as all processes share it. Leased units are still part of `total`. */
export interface SharedBucket extends Bucket {
  /** By node. A node that may lease stands here even while it holds nothing, so that it counts for the shares. */
  leases: Record<string, Lease>
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
  const { node, limit, report, asks } = sync
  const before = row ?? { limit, total: limit * unit, at: dbNow - (report?.durationMs ?? 0), leases: {} }
  const now = notBefore(before.at, dbNow)
  const others = liveLeases(before.leases, node, now)
  const reserved = Object.values(others).reduce((sum, { parts }) => sum + parts, 0)
  let bucket = settle({ ...before, at: Math.min(before.at, now) }, report, now)
  const decisions = asks.map((ask) => {
    const { admitted, after } = decide(bucket, ask, reserved)
    bucket = after
    return { admitted, limit: bucket.limit, total: bucket.total }
  })
  const lease = Math.max(sync.held, sync.wantsLease ? grant(bucket, others, reserved) : 0)
  const isKnown = lease > 0 || sync.wantsLease
  const leases = isKnown ? { ...others, [node]: { parts: lease, until: now + leaseMs } } : others
  return { row: { ...bucket, leases }, synced: { bucket, reserved, lease, decisions } }
}

const clockStepMs = 1000

/** Time does not run backwards, unless the clock was set: waiting for it to catch up would mean no refill till then. */
function notBefore(at: number, dbNow: number): number {
  return dbNow < at && at - dbNow < clockStepMs ? at : dbNow
}

function liveLeases(leases: Record<string, Lease>, node: string, now: number): Record<string, Lease> {
  const live = Object.entries(leases).filter(
    ([owner, { until }]) => owner !== node && until > now && until <= now + leaseMs,
  )
  return Object.fromEntries(live)
}

function decide(bucket: Bucket, { limit, cost }: Ask, reserved: number) {
  const current = bucket.limit === limit ? bucket : limited(bucket, limit)
  const parts = cost * unit
  const admitted = current.total - reserved >= parts
  return { admitted, after: { ...current, total: charged(current.total, limit, parts) } }
}

/**
 * A fair share of the hundredth of the limit that may be leased at a time. Within this bound a process that holds
 * units without using them keeps them from others, so it is also the most that is refused too early.
 */
function grant({ limit, total }: Bucket, others: Record<string, Lease>, reserved: number): number {
  const leasable = Math.floor(limit / 100)
  const nodes = Object.keys(others).length + 1
  const share = Math.floor(leasable / nodes) * unit
  const available = Math.floor((total - reserved) / unit) * unit
  return Math.min(share, leasable * unit - reserved, available)
}
