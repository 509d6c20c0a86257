import { setImmediate as settled } from 'node:timers/promises'
import {
  type BucketStore,
  createRateLimiter,
  partsPerUnit,
  type RateLimiter,
  type RateLimitRequest,
  type RateLimitResult,
  type Report,
} from '../../../../infra/access/rate-limit/limiter.ts'

interface ProcessesOptions {
  count?: number
  maxBuckets?: number
  /** Delays a statement and its result. Default: they take no time. */
  travel?: (after: (ms: number) => Promise<void>) => Promise<void>
}

/** Creates processes with one store in virtual time, so that the machine's speed does not matter. */
export function createProcesses({
  count = 1,
  travel = async () => {},
  maxBuckets,
}: ProcessesOptions = {}) {
  const time = createVirtualTime()
  const shared = createMemoryStore(time.clock, () => travel(time.after))
  const limiters = Array.from({ length: count }, () =>
    createRateLimiter({
      store: shared.store,
      clock: time.clock,
      every: time.every,
      ...(maxBuckets ? { maxBuckets } : {}),
    }),
  )
  const [limiter] = limiters
  if (!limiter) throw new Error('no process')
  const wait = async (ms: number) => {
    await time.runUntil(time.clock() + ms)
    await settled()
  }
  return { ...shared, time, wait, limiter, limiters }
}

export const requestOf = (name: string, { limit = 600, cost = 1 } = {}): RateLimitRequest => ({
  owner: `org_${name}`,
  bucket: 'secret',
  limit,
  cost,
})

export async function takeMany(
  limiter: RateLimiter | undefined,
  count: number,
  request = requestOf('0'),
): Promise<RateLimitResult[]> {
  const results = []
  for (let i = 0; i < count; i++) if (limiter) results.push(await limiter.consume(request))
  return results
}

export const countAdmitted = (results: RateLimitResult[]) =>
  results.filter(({ admitted }) => admitted).length

/** Outcome of a statement. `lost`: it charged, but its result never arrived. */
export type Fate = 'healthy' | 'refused' | 'lost'

export interface Row {
  parts: number
  at: number
}

/**
 * Keeps buckets in memory, by a second implementation of the store's rule. Outcomes of statements can be scripted.
 * `travel` is awaited before a charge and again before its result.
 */
function createMemoryStore(clock: () => number, travel: () => Promise<void>) {
  const rows = new Map<string, Row>()
  let script: () => Fate = () => 'healthy'
  let statements = 0

  const store: BucketStore = {
    async charge(reports) {
      statements++
      const fate = script()
      const ids = reports.map(({ bucketId }) => bucketId)
      if (new Set(ids).size < ids.length) throw new Error('a statement names a bucket twice')
      await travel()
      if (fate === 'refused') throw new Error('as scripted')
      const left = reports.map((report) => {
        const row = charged(rows.get(report.bucketId), report, clock())
        rows.set(report.bucketId, row)
        return row.parts
      })
      if (fate === 'lost') throw new Error('as scripted')
      await travel()
      return left
    },
  }

  return {
    store,
    statements: () => statements,
    row: (bucketId: string) => rows.get(bucketId),
    /** Sets the outcomes of the following statements. */
    script(next: () => Fate): void {
      script = next
    },
  }
}

export function charged(row: Row | undefined, { limit, charge }: Report, now: number): Row {
  const full = limit * partsPerUnit
  if (!row) return { parts: full - charge, at: now }
  const refilled = Math.max(-full, row.parts) + limit * Math.max(0, now - row.at)
  return { parts: Math.min(full, refilled) - charge, at: now }
}

/** A single bucket in exact arithmetic: the limit as documented. */
export function createModel(limit: number, startedAt: number) {
  const unit = 60_000n
  const capacity = BigInt(limit) * unit
  let units = capacity
  let last = startedAt
  const unitsAt = (now: number) => {
    const later = units + BigInt(limit) * BigInt(now - last)
    return later > capacity ? capacity : later
  }

  return {
    request(cost: number, now: number) {
      const price = BigInt(cost) * unit
      units = unitsAt(now)
      last = now
      const admitted = units >= price
      units -= price
      if (units < -capacity) units = -capacity
      return { admitted, remaining: units < 0n ? 0 : Number(units / unit) }
    },
    /** Returns true if `cost` would be admitted at `now`. Charges nothing. */
    wouldAdmit: (cost: number, now: number): boolean => unitsAt(now) >= BigInt(cost) * unit,
  }
}

/** Creates a clock and timers whose time passes only in `runUntil`. */
export function createVirtualTime(start = 1_000_000) {
  let now = start
  const entries: { at: number; run: () => void }[] = []

  function at(time: number, run: () => void): void {
    const index = entries.findLastIndex((other) => other.at <= time)
    entries.splice(index + 1, 0, { at: time, run })
  }

  return {
    clock: () => now,
    at,
    after: (ms: number) => new Promise<void>((resolve) => at(now + ms, resolve)),
    /** Option of createRateLimiter. */
    every(ms: number, run: () => void): () => void {
      let stopped = false
      const again = () => {
        if (stopped) return
        run()
        at(now + ms, again)
      }
      at(now + ms, again)
      return () => {
        stopped = true
      }
    },
    /** Runs all timers due by `end`, and after each one the promises that it settles. */
    async runUntil(end: number): Promise<void> {
      for (let next = entries[0]; next && next.at <= end; next = entries[0]) {
        entries.shift()
        now = Math.max(now, next.at)
        next.run()
        await settled()
      }
      now = Math.max(now, end)
    },
  }
}
