import { type Bucket, charged, clamp, refilled, unit } from './bucket.ts'

/**
 * What a process has taken from a bucket and not yet reported. Refilling and charging only ever shift a bucket and
 * clip it, and so does any sequence of them: beside the sum it is enough to know where the sequence would have led a
 * full bucket (`high`) and one in the deepest debt (`low`). So reporting late loses nothing, not even what a full
 * bucket did not gain. All in parts.
 */
export interface Spending {
  /** When the first of it was taken. */
  since: number
  spent: number
  low: number
  high: number
}

/** Spending as another clock can place it. */
export interface Report {
  durationMs: number
  spent: number
  low: number
  high: number
}

export function noSpending(limit: number, now: number): Spending {
  return { since: now, spent: 0, low: -limit * unit, high: limit * unit }
}

/** Lets `ms` go by. */
export function refillSpending(spending: Spending, limit: number, ms: number): void {
  spending.low = refilled(spending.low, limit, ms)
  spending.high = refilled(spending.high, limit, ms)
}

export function addSpending(spending: Spending, limit: number, parts: number): void {
  spending.spent += parts
  spending.low = charged(spending.low, limit, parts)
  spending.high = charged(spending.high, limit, parts)
}

/** The spending up to `now`. */
export function reportOf({ since, spent, low, high }: Spending, now: number): Report {
  return { durationMs: now - since, spent, low, high }
}

/**
 * The bucket at `now`, after spending that ended at `now` (undefined: none). Exact when nobody else has touched it
 * during the spending; else no higher than exact, but for the floor of a bucket in the deepest debt.
 */
export function settle(bucket: Bucket, report: Report | undefined, now: number): Bucket {
  const { limit, total, at } = bucket
  if (!report) return { limit, total: refilled(total, limit, now - at), at: now }
  const { durationMs, spent, low, high } = report
  const since = now - durationMs
  const start = at < since ? refilled(total, limit, since - at) : total
  const gained = limit * (now - Math.max(at, since))
  // Where others came between, `low` would count the time before them as gained once more.
  const floor = at <= since ? low : -limit * unit
  return { limit, total: clamp(start + gained - spent, floor, high), at: now }
}

/** Two spendings in a row as one: `earlier` ended at `between`, `later` (undefined: none) ends at `now`. */
export function joinSpending(
  limit: number,
  earlier: { spending: Spending; at: number },
  later: { spending: Spending | undefined; at: number },
): Spending {
  const report = later.spending && reportOf(later.spending, later.at)
  const carry = (total: number) => settle({ limit, total, at: earlier.at }, report, later.at).total
  const { since, spent, low, high } = earlier.spending
  return { since, spent: spent + (later.spending?.spent ?? 0), low: carry(low), high: carry(high) }
}
