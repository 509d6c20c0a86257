import type { KeyType } from '../../../schemas/events.ts'
import { createGroupCommit } from '../../flow/group-commit.ts'
import type { Clock, ConsoleSessionId, OrganizationId } from '../../ids.ts'
import { createLru } from '../../lru.ts'

/**
 * All keys of one type of an organization share a bucket. What an edge has scored has one of its own, and so has each
 * console session.
 */
export type BucketName = KeyType | 'requests' | 'person'

type Owner = OrganizationId | ConsoleSessionId

export const bucketIdOf = (owner: Owner, bucket: BucketName): string => `${owner}:${bucket}`

export interface RateLimitRequest {
  owner: Owner
  bucket: BucketName
  /** Units in 60 seconds, at least 1; also what the bucket holds at most. */
  limit: number
  cost: number
}

export interface RateLimitResult {
  admitted: boolean
  limit: number
  remaining: number
  cost: number
  /** Whole seconds until the same request would be admitted, at least 1; 0 when it was. */
  retryAfterSeconds: number
}

export interface RateLimiter {
  /** Admits at once by the last balance while little is unreported. Only the store refuses. */
  consume(request: RateLimitRequest): RateLimitResult | Promise<RateLimitResult>
  refund(request: RateLimitRequest): void
  /** Whole units that are left of the request's bucket, as far as this process knows; negative where it owes some. */
  remaining(request: RateLimitRequest): number
  /** Reports what is left to report. */
  close(): Promise<void>
}

/**
 * A unit is counted in 60,000 parts. A bucket of `limit` units in 60 seconds then gains `limit` parts a millisecond,
 * and all arithmetic is in whole numbers, exact up to a limit of 10^11.
 */
export const unit = 60_000

export interface Report {
  bucketId: string
  limit: number
  /** Parts; negative when more was refunded than spent. */
  charge: number
}

export interface BucketStore {
  /**
   * Charges buckets that all processes share, each named once. Returns the parts that each has then, in their order.
   * They may be below `-limit` or above `limit` until the next charge. Rejects when the store cannot be reached.
   */
  charge(reports: Report[]): Promise<number[]>
}

export interface RateLimiterOptions {
  store: BucketStore
  /** Whole milliseconds of which only differences matter. Default: a clock of the process that is never set. */
  clock?: Clock
  /** Calls `run` every `ms` until the function it returned is called. Default: an interval that keeps nothing alive. */
  every?: (ms: number, run: () => void) => () => void
  maxBuckets?: number
}

interface Bucket {
  readonly id: string
  limit: number
  /** The store's last answer, by the clock of this process; undefined before the first one and after a failure. */
  balance: { parts: number; at: number } | undefined
  /** Parts spent here that `balance` lacks; negative when more was refunded. */
  unreported: number
}

/** A request that waits for the store's answer. A cost of 0 only reports. */
interface Waiting {
  bucket: Bucket
  cost: number
}

/** The row of a bucket in a statement. */
interface Charge {
  bucket: Bucket
  /** Parts of `charge` that requests are waiting for. */
  waits: number
  charge: number
}

const reportMs = 50
// So n processes together admit at most n twentieths more than the limit.
const mostUnreported = 1 / 20

/** Token buckets shared by all processes with the same store (docs/internals/architecture.md, Rate limits). */
export function createRateLimiter(options: RateLimiterOptions): RateLimiter {
  const { store, clock = processClock, every = unrefInterval, maxBuckets = 40_000 } = options
  const recent = createLru<string, Bucket>(maxBuckets)
  // By id, because `recent` may drop a bucket before its report, and a statement can name a bucket only once.
  const dirty = new Map<string, Bucket>()
  const statements = createGroupCommit({ write, maxRecords: Number.POSITIVE_INFINITY })
  let reporting: Promise<void> | undefined

  async function write(waiting: Waiting[]): Promise<RateLimitResult[]> {
    const charges = startCharges(waiting)
    for (const { bucket } of charges) dirty.delete(bucket.id)
    let balances: number[] = []
    try {
      balances = await store.charge(
        charges.map(({ bucket: { id, limit }, charge }) => ({ bucketId: id, limit, charge })),
      )
    } finally {
      settle(charges, balances, clock())
    }
    return decideInOrder(waiting, balancesBefore(charges, balances))
  }

  async function askStore(waiting: Waiting): Promise<RateLimitResult> {
    const [result] = await statements.append([waiting])
    if (!result) throw new Error(`no answer for bucket ${waiting.bucket.id}`)
    return result
  }

  async function report(): Promise<void> {
    const reports = [...dirty.values()].map((bucket) => ({ bucket, cost: 0 }))
    await statements.append(reports).catch(() => undefined)
  }

  const stopReporting = every(reportMs, () => {
    if (dirty.size === 0) return
    reporting ??= report().finally(() => {
      reporting = undefined
    })
  })

  function find({ owner, bucket: name, limit }: RateLimitRequest): Bucket {
    const id = bucketIdOf(owner, name)
    const found = recent.get(id)
    if (found) return found
    const bucket = dirty.get(id) ?? { id, limit, balance: undefined, unreported: 0 }
    recent.set(id, bucket)
    return bucket
  }

  return {
    consume(request) {
      const { limit, cost } = request
      const bucket = find(request)
      // The store clips what a lower limit doesn't hold.
      if (bucket.limit !== limit) bucket.balance = undefined
      bucket.limit = limit
      dirty.set(bucket.id, bucket)
      const unreported = bucket.unreported + cost * unit
      const parts = partsOf(bucket, limit, clock()) - cost * unit
      if (!bucket.balance || parts < 0 || unreported >= limit * unit * mostUnreported)
        return askStore({ bucket, cost })
      bucket.unreported = unreported
      return resultOf({ limit, cost, parts })
    },
    refund(request) {
      const bucket = find(request)
      const free = request.limit * unit - partsOf(bucket, request.limit, clock())
      bucket.unreported -= Math.min(request.cost * unit, free)
      dirty.set(bucket.id, bucket)
    },
    remaining: (request) => Math.floor(partsOf(find(request), request.limit, clock()) / unit),
    async close() {
      stopReporting()
      await reporting
      await report()
    },
  }
}

/** Sums a statement by bucket. Until the answer comes, everything in it counts as spent. */
function startCharges(waiting: Waiting[]): Charge[] {
  return [...Map.groupBy(waiting, ({ bucket }) => bucket)].map(([bucket, requests]) => {
    const waits = requests.reduce((sum, { cost }) => sum + cost * unit, 0)
    bucket.unreported += waits
    return { bucket, waits, charge: bucket.unreported }
  })
}

/** Takes over the balances, none after a failure. A statement that failed may have charged, so it isn't repeated. */
function settle(charges: Charge[], balances: number[], at: number): void {
  for (const [i, { bucket, charge }] of charges.entries()) {
    const parts = balances[i]
    bucket.unreported -= charge
    bucket.balance = parts === undefined ? undefined : { parts, at }
  }
}

/** Returns what each bucket had before the requests that waited. */
function balancesBefore(charges: Charge[], balances: number[]): Map<Bucket, number> {
  return new Map(
    charges.map(({ bucket, waits }, i) => [
      bucket,
      Math.min(bucket.limit * unit, (balances[i] ?? 0) + waits),
    ]),
  )
}

function decideInOrder(waiting: Waiting[], left: Map<Bucket, number>): RateLimitResult[] {
  return waiting.map(({ bucket, cost }) => {
    const parts = (left.get(bucket) ?? 0) - cost * unit
    left.set(bucket, parts)
    return resultOf({ limit: bucket.limit, cost, parts })
  })
}

/** Returns what is left of a bucket as far as this process knows. A clock that steps back only stands still. */
function partsOf({ balance, unreported }: Bucket, limit: number, now: number): number {
  const full = limit * unit
  if (!balance) return full - unreported
  const { parts, at } = balance
  const refilled = Math.max(-full, parts) + limit * Math.max(0, now - at)
  return Math.min(full, refilled) - unreported
}

/** `parts`: what is left after the charge. */
function resultOf({
  limit,
  cost,
  parts,
}: Pick<RateLimitResult, 'limit' | 'cost'> & { parts: number }): RateLimitResult {
  const admitted = parts >= 0
  const missing = cost * unit - Math.max(-limit * unit, parts)
  const retryAfterSeconds = admitted ? 0 : Math.max(1, Math.ceil(missing / limit / 1000))
  const remaining = Math.min(limit, Math.max(0, Math.floor(parts / unit)))
  return { admitted, limit, remaining, cost, retryAfterSeconds }
}

const processClock: Clock = () => Math.trunc(performance.now())

function unrefInterval(ms: number, run: () => void): () => void {
  const timer = setInterval(run, ms).unref()
  return () => clearInterval(timer)
}
