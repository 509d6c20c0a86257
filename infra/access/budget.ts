import { ApiError } from '../errors/errors.ts'
import type { Clock } from '../ids.ts'
import { createLru } from '../lru.ts'

/** What each key, such as a source, may spend in this process. */
export interface Budget {
  /** False, and nothing is spent, where less is left. More than a whole burst is never there. */
  spend(key: string, cost?: number): boolean
  giveBack(key: string, cost?: number): void
}

/**
 * The generic cell rate algorithm (ITU-T I.371, as a virtual schedule), for each process on its own. A key is one
 * number: the time at which its budget is full again. `burst` is how many units there are at once. A key that is
 * forgotten, because `maxKeys` others were used since, starts with a full budget.
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

/** 429 for whoever has spent a budget or bucket, with the whole seconds until there is a unit again. */
export function overBudget(seconds = 1, options: { message?: string } = {}): ApiError {
  return new ApiError('rate_limit.exceeded', {
    ...options,
    headers: { 'retry-after': String(seconds) },
  })
}
