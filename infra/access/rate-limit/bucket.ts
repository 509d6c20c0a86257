/**
 * A unit is counted in 60,000 parts: a bucket of `limit` units in 60 seconds then gains `limit` parts a millisecond,
 * and all arithmetic is in whole numbers, exact up to a limit of 10^11. Counted in fractions of a unit, two processes
 * that add up the same time in other steps would disagree about the last unit.
 */
export const unit = 60_000

/** A token bucket that may owe: `total` is in parts, from -limit to +limit units; `at` is in milliseconds. */
export interface Bucket {
  limit: number
  total: number
  at: number
}

/** Parts after `ms` of refilling at `limit` units in 60 seconds; no more than `limit` units. */
export function refilled(parts: number, limit: number, ms: number): number {
  return Math.min(limit * unit, parts + limit * ms)
}

/** Parts after a cost was taken away (or, negative, given back), whether or not they sufficed for it. */
export function charged(parts: number, limit: number, cost: number): number {
  return clamp(parts - cost, -limit * unit, limit * unit)
}

export function clamp(value: number, low: number, high: number): number {
  return value < low ? low : value > high ? high : value
}

/** The bucket as it is from now on when its limit is another one: what it holds, or owes, fits into it. */
export function limited(bucket: Bucket, limit: number): Bucket {
  return { limit, total: charged(bucket.total, limit, 0), at: bucket.at }
}
