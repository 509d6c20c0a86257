import { ApiError } from '../errors/errors.ts'
import type { Clock } from '../ids.ts'
import { createLru } from '../lru.ts'

/** A rate limit per key, such as a source address, in this process. */
export interface Budget {
  /** Returns false, and spends nothing, if fewer than `cost` units are left. A `cost` above the burst never passes. */
  spend(key: string, cost?: number): boolean
  refund(key: string, cost?: number): void
}

/**
 * Creates an in-process rate limiter: the generic cell rate algorithm (GCRA; ITU-T I.371, virtual scheduling). It
 * stores one number per key, the time at which the budget is full again. `burst` is the capacity in units. A key
 * evicted after `maxKeys` others starts again with a full budget.
 */
export function createBudget({
  clock,
  perSecond = 10,
  burst = 50,
  maxKeys = 20_000,
}: {
  clock: Clock
  perSecond?: number
  burst?: number
  maxKeys?: number
}): Budget {
  const intervalMs = 1000 / perSecond
  const windowMs = burst * intervalMs
  const fullAt = createLru<string, number>(maxKeys)
  return {
    spend(key, cost = 1) {
      const now = clock()
      const lastFull = fullAt.get(key) ?? now
      // More than a window ahead means that the clock was set back, which must not lock the key out.
      const from = lastFull < now || lastFull > now + windowMs ? now : lastFull
      if (from + cost * intervalMs > now + windowMs) return false
      fullAt.set(key, from + cost * intervalMs)
      return true
    },
    refund(key, cost = 1) {
      const lastFull = fullAt.get(key)
      if (lastFull !== undefined) fullAt.set(key, lastFull - cost * intervalMs)
    },
  }
}

/** Returns the 429 for an exhausted budget or bucket. `seconds` goes into `Retry-After`. */
export function rateLimitError(seconds = 1, options: { message?: string } = {}): ApiError {
  return new ApiError('rate_limit.exceeded', {
    ...options,
    headers: { 'retry-after': String(seconds) },
  })
}
