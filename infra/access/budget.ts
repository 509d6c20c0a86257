import { LRUCache } from 'lru-cache'
import { ApiError } from '../errors/errors.ts'
import type { Clock } from '../ids.ts'

export interface BudgetOptions {
  clock: Clock
  /** Units, of whatever is counted (default 10). */
  perSecond?: number
  /** Units at once (default 50). */
  burst?: number
  /** A key that is forgotten starts with a full budget (default 20,000). */
  maxKeys?: number
}

/** What each key, such as a source, may spend in this process. */
export interface Budget {
  /** False, and nothing is spent, where less is left. More than a whole burst is never there. */
  spend(key: string, cost?: number): boolean
  giveBack(key: string, cost?: number): void
}

/**
 * The generic cell rate algorithm (ITU-T I.371, as a virtual schedule), for each process on its own. A key is one
 * number: the time at which its budget is full again.
 */
export function createBudget(options: BudgetOptions): Budget {
  const { clock, perSecond = 10, burst = 50, maxKeys = 20_000 } = options
  const intervalMs = 1000 / perSecond
  const windowMs = burst * intervalMs
  const fullAt = new LRUCache<string, number>({ max: maxKeys })
  return {
    spend(key, cost = 1) {
      const now = clock()
      const last = fullAt.get(key) ?? now
      // Further away than a whole window: the clock was set back, which must not lock anyone out for as long.
      const from = last < now || last > now + windowMs ? now : last
      if (from + cost * intervalMs > now + windowMs) return false
      fullAt.set(key, from + cost * intervalMs)
      return true
    },
    giveBack(key, cost = 1) {
      const last = fullAt.get(key)
      if (last !== undefined) fullAt.set(key, last - cost * intervalMs)
    },
  }
}

/**
 * The answer to whoever spent a budget that is no organization's (service.md 8.1.7): without X-RateLimit headers. The
 * next unit is there within so many seconds (default 1), as a refused request costs nothing.
 */
export function overBudget(seconds = 1, options: { message?: string } = {}): ApiError {
  return new ApiError('rate_limit.exceeded', { ...options, headers: { 'retry-after': String(seconds) } })
}
