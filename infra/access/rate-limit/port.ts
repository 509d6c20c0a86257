import type { KeyType } from '../../../schemas/events.ts'
import type { OrganizationId } from '../../ids.ts'

/** What one request asks of the bucket that all keys of one type of an organization share. */
export interface TakeRequest {
  organizationId: OrganizationId
  keyType: KeyType
  /** Units in 60 seconds, at least 1; also what the bucket holds at most. */
  limit: number
  /** Whole units. */
  cost: number
}

export interface Taken {
  admitted: boolean
  limit: number
  /** Whole units left, at least 0. */
  remaining: number
  cost: number
  /** Whole seconds until the same request would be admitted, at least 1; 0 when it was. */
  retryAfterSeconds: number
}

export interface RateLimiter {
  /** Answers at once where this process holds enough units, or knows that there are not enough. Never rejects. */
  take(request: TakeRequest): Taken | Promise<Taken>
  /** Gives back what an answer that must not cost anything has taken. */
  refund(request: TakeRequest): void
  /** Gives unused units back to the shared buckets, after what is under way. Later requests are decided by this process alone. */
  close(): Promise<void>
}
