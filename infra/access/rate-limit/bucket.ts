import type { KeyType } from '../../../schemas/events.ts'
import type { ConsoleSessionId, OrganizationId } from '../../ids.ts'

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

/**
 * A unit is counted in 60,000 parts. A bucket of `limit` units in 60 seconds then gains `limit` parts a millisecond,
 * and all arithmetic is in whole numbers, exact up to a limit of 10^11.
 */
export const unit = 60_000

/** What a process knows of a bucket. Amounts are in parts, times in milliseconds by its own clock. */
export interface LocalBucket {
  readonly id: string
  limit: number
  /** What the shared bucket has next to `reserved`, less `owed`. */
  shared: number
  at: number
  isKnown: boolean
  /** Left of what was reserved at the last answer, which is `held`. */
  reserved: number
  held: number
  /** Spent without a reservation and not reported yet; negative when more was given back. */
  owed: number
  syncedAt: number
  usedAt: number
  isBusy: boolean
}

export function localBucket(id: string, limit: number, now: number): LocalBucket {
  return {
    id,
    limit,
    shared: limit * unit,
    at: now,
    isKnown: false,
    reserved: 0,
    held: 0,
    owed: 0,
    syncedAt: now,
    usedAt: Number.NEGATIVE_INFINITY,
    isBusy: false,
  }
}

/** Refills up to `now`. A clock that steps back only stands still. */
export function advance(bucket: LocalBucket, limit: number, now: number): void {
  const gained = limit * Math.max(0, now - bucket.at)
  bucket.limit = limit
  bucket.shared = within(bucket, bucket.shared + gained)
  bucket.at = Math.max(bucket.at, now)
}

// A bucket holds its limit at most, with what was reserved, and owes as much at most.
function within({ limit, held }: { limit: number; held: number }, parts: number): number {
  return Math.max(-limit * unit - held, Math.min(limit * unit - held, parts))
}

/** Admits what the reservation covers; else undefined. Other processes may have spent the rest of the bucket. */
export function admitReserved(bucket: LocalBucket, cost: number): RateLimitResult | undefined {
  return bucket.isKnown && bucket.reserved >= cost * unit ? spend(bucket, cost) : undefined
}

/** Decides by a balance that was read just now; undefined where another process could take the units first. */
export function decideByBalance(bucket: LocalBucket, cost: number): RateLimitResult | undefined {
  const isShort = bucket.isKnown && bucket.shared + bucket.reserved < cost * unit
  return isShort ? spend(bucket, cost) : admitReserved(bucket, cost)
}

export function mustRenew({ reserved, held }: LocalBucket): boolean {
  return reserved <= held / 4
}

function spend(bucket: LocalBucket, cost: number): RateLimitResult {
  const admitted = bucket.shared + bucket.reserved >= cost * unit
  const reserved = Math.min(bucket.reserved, cost * unit)
  bucket.reserved -= reserved
  owe(bucket, cost * unit - reserved)
  return result({ admitted, limit: bucket.limit, cost, parts: bucket.shared + bucket.reserved })
}

/** A negative number of parts gives them back. */
export function owe(bucket: LocalBucket, parts: number): void {
  bucket.owed += parts
  bucket.shared = within(bucket, bucket.shared - parts)
}

// `parts`: what is left after the charge.
function result({
  admitted,
  limit,
  cost,
  parts,
}: Pick<RateLimitResult, 'admitted' | 'limit' | 'cost'> & { parts: number }): RateLimitResult {
  const missing = cost * unit - Math.max(-limit * unit, parts)
  const retryAfterSeconds = admitted ? 0 : Math.max(1, Math.ceil(missing / limit / 1000))
  const remaining = Math.min(limit, Math.max(0, Math.floor(parts / unit)))
  return { admitted, limit, remaining, cost, retryAfterSeconds }
}

/** What one round trip charges, gives back and reserves. */
export interface Report {
  bucketId: string
  limit: number
  /** Parts; negative when more was given back than spent. */
  charge: number
  /** Parts of the reservation that go back, and that stay reserved. */
  returned: number
  retained: number
  reserves: boolean
}

/** The shared bucket after a report, with parts that are below `-limit` or above `limit` until it is read again. */
export interface Balance {
  parts: number
  /** Parts that are newly reserved for this process. */
  granted: number
}

/** Takes all that is owed into a report. With `costs` of waiting requests nothing stays reserved, because it counts for them. */
export function startReport(
  bucket: LocalBucket,
  { costs, isIdle }: { costs: number[]; isIdle: boolean },
): Report {
  const { id: bucketId, limit, reserved, owed, isBusy } = bucket
  const isReturned = isIdle || costs.length > 0
  bucket.owed = 0
  if (isReturned) {
    bucket.shared += reserved
    bucket.reserved = 0
    bucket.held = 0
  }
  return {
    bucketId,
    limit,
    charge: owed + sum(costs) * unit,
    returned: isReturned ? reserved : 0,
    retained: bucket.reserved,
    reserves: isBusy && !isIdle,
  }
}

export interface Answer extends Balance {
  /** What each request costs that waited for the answer. */
  costs: number[]
  retained: number
  sentAt: number
}

/** Goes on from the answer to a report, and decides the requests that waited, in order. */
export function applyAnswer(
  bucket: LocalBucket,
  { parts, granted, costs, retained, sentAt }: Answer,
): RateLimitResult[] {
  const { limit, at } = bucket
  bucket.isKnown = true
  bucket.syncedAt = sentAt
  bucket.held = retained + granted
  bucket.reserved += granted
  bucket.shared = within(bucket, within(bucket, parts) + limit * (at - sentAt) - bucket.owed)
  let left = Math.min(limit * unit, parts + granted + sum(costs) * unit)
  return costs.map((cost) => {
    const admitted = left >= cost * unit
    left -= cost * unit
    return result({ admitted, limit, cost, parts: left })
  })
}

const sum = (costs: number[]) => costs.reduce((all, cost) => all + cost, 0)
