import { LRUCache } from 'lru-cache'
import type { KeyType } from '../../../schemas/events.ts'
import type { OrganizationId } from '../../ids.ts'
import { type LocalBucket, localBucket } from './local-bucket.ts'
import type { TakeRequest } from './port.ts'

export interface KnownBucketsOptions {
  /** Of each key type; as many again may wait for giving back what they hold. */
  maxBuckets: number
  isFlying: (bucket: LocalBucket) => boolean
}

/**
 * The buckets that this process remembers. One that is forgotten while it holds units or has something to report
 * stays in `active` until the sweep has given that back. Whoever asks for it before gets the same one again: two
 * of one process would give back each other's lease.
 */
export function createKnownBuckets({ maxBuckets, isFlying }: KnownBucketsOptions) {
  const active = new Set<LocalBucket>()
  const leaving = new Map<string, LocalBucket>()
  const createMap = () =>
    new LRUCache<OrganizationId, LocalBucket>({ max: maxBuckets, dispose: (bucket) => forget(bucket) })
  const known: Record<KeyType, LRUCache<OrganizationId, LocalBucket>> = {
    secret: createMap(),
    publishable: createMap(),
  }

  function forget(bucket: LocalBucket): void {
    if (!active.has(bucket)) return
    bucket.isForgotten = true
    leaving.set(bucket.id, bucket)
    if (leaving.size > 2 * maxBuckets) dropOldest()
  }

  /** Its lease expires; what it had to report is lost. */
  function dropOldest(): void {
    for (const bucket of leaving.values()) {
      if (isFlying(bucket)) continue
      settled(bucket)
      return
    }
  }

  function settled(bucket: LocalBucket): void {
    active.delete(bucket)
    leaving.delete(bucket.id)
  }

  function create(id: string, { limit }: TakeRequest, now: number): LocalBucket {
    const bucket = leaving.get(id) ?? localBucket(id, limit, now)
    leaving.delete(id)
    bucket.isForgotten = false
    return bucket
  }

  return {
    /** Those that hold units or have something to report, the one that was swept last at the end. */
    active,
    /** The bucket of the request, made full when there is none. */
    find(request: TakeRequest, now: number): LocalBucket {
      const { organizationId, keyType } = request
      const found = known[keyType].get(organizationId)
      if (found) return found
      const bucket = create(idOf(request), request, now)
      known[keyType].set(organizationId, bucket)
      return bucket
    },
    peek: (request: TakeRequest): LocalBucket | undefined =>
      known[request.keyType].get(request.organizationId) ?? leaving.get(idOf(request)),
    /** The bucket holds nothing and has nothing to report. */
    settled,
  }
}

const idOf = ({ organizationId, keyType }: TakeRequest) => `${organizationId}:${keyType}`

export type KnownBuckets = ReturnType<typeof createKnownBuckets>
