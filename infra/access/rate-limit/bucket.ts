import type { KeyType } from '../../../schemas/events.ts'
import type { OrganizationId } from '../../ids.ts'

/** One request, to the bucket that all keys of one type of an organization share. */
export interface RateLimitRequest extends BucketRequest {
  organizationId: OrganizationId
  keyType: KeyType
}

export interface BucketRequest {
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

/**
 * A unit is counted in 60,000 parts. A bucket of `limit` units in 60 seconds then gains `limit` parts a millisecond,
 * and all arithmetic is in whole numbers, exact up to a limit of 10^11. With fractions of a unit, two processes that
 * add up the same time in other steps would disagree about the last unit.
 */
export const unit = 60_000

/** A token bucket that may owe: `total` is in parts, from -limit to +limit units; `at` is in milliseconds. */
export interface Bucket {
  limit: number
  total: number
  at: number
}

export function refilled(parts: number, limit: number, ms: number): number {
  return Math.min(limit * unit, parts + limit * ms)
}

/** Parts after a cost was subtracted (or, negative, given back), whether or not they sufficed for it. */
export function charged(parts: number, limit: number, cost: number): number {
  return clamp(parts - cost, -limit * unit, limit * unit)
}

function clamp(value: number, low: number, high: number): number {
  return value < low ? low : value > high ? high : value
}

export function limited(bucket: Bucket, limit: number): Bucket {
  return { limit, total: charged(bucket.total, limit, 0), at: bucket.at }
}

/**
 * What a process has charged and not yet reported, in parts. Refilling and charging only ever shift a bucket and clip
 * it, and so does any sequence of them. Beside the sum it is enough to know where the sequence would have led a full
 * bucket (`high`) and one in the deepest debt (`low`). So reporting late loses nothing, not even what a full bucket did
 * not gain.
 */
export interface Usage {
  since: number
  spent: number
  low: number
  high: number
}

export interface UsageReport {
  durationMs: number
  spent: number
  low: number
  high: number
}

export function noUsage(limit: number, now: number): Usage {
  return { since: now, spent: 0, low: -limit * unit, high: limit * unit }
}

export function refillUsage(usage: Usage, limit: number, ms: number): void {
  usage.low = refilled(usage.low, limit, ms)
  usage.high = refilled(usage.high, limit, ms)
}

export function addUsage(usage: Usage, limit: number, parts: number): void {
  usage.spent += parts
  usage.low = charged(usage.low, limit, parts)
  usage.high = charged(usage.high, limit, parts)
}

export function usageReport({ since, spent, low, high }: Usage, now: number): UsageReport {
  return { durationMs: now - since, spent, low, high }
}

/**
 * The bucket at `now`, after usage that ended at `now`. Exact when nobody else has changed the bucket during the usage;
 * else no higher than exact, but for the floor of a bucket in the deepest debt.
 */
export function applyUsage(bucket: Bucket, report: UsageReport | undefined, now: number): Bucket {
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

export function joinUsage(
  limit: number,
  earlier: { usage: Usage; at: number },
  later: { usage: Usage | undefined; at: number },
): Usage {
  const report = later.usage && usageReport(later.usage, later.at)
  const carry = (total: number) => applyUsage({ limit, total, at: earlier.at }, report, later.at).total
  const { since, spent, low, high } = earlier.usage
  return { since, spent: spent + (later.usage?.spent ?? 0), low: carry(low), high: carry(high) }
}
