import ipaddr from 'ipaddr.js'
import { LRUCache } from 'lru-cache'
import type { Clock } from '../ids.ts'

export interface SourceBudgetOptions {
  clock: Clock
  perSecond?: number
  burst?: number
  /** A source that is forgotten starts with a full budget (default 20,000). */
  maxSources?: number
}

export interface SourceBudget {
  spend(ip: string): boolean
  giveBack(ip: string): void
}

/**
 * The generic cell rate algorithm (ITU-T I.371, as a virtual schedule), for each process on its own. A source is one
 * number: the time at which its budget is full again.
 */
export function createSourceBudget(options: SourceBudgetOptions): SourceBudget {
  const { clock, perSecond = 10, burst = 50, maxSources = 20_000 } = options
  const intervalMs = 1000 / perSecond
  const windowMs = burst * intervalMs
  const fullAt = new LRUCache<string, number>({ max: maxSources })
  return {
    spend(ip) {
      const source = sourceOf(ip)
      const now = clock()
      const last = fullAt.get(source) ?? now
      // Further away than a whole window: the clock was set back, which must not lock anyone out for as long.
      const from = last < now || last > now + windowMs ? now : last
      if (from + intervalMs > now + windowMs) return false
      fullAt.set(source, from + intervalMs)
      return true
    },
    giveBack(ip) {
      const source = sourceOf(ip)
      const last = fullAt.get(source)
      if (last !== undefined) fullAt.set(source, last - intervalMs)
    },
  }
}

/**
 * An IPv4 address, also one carried in IPv6 (`::ffff:203.0.113.9`), or the /64 of an IPv6 address, which is what one
 * customer of an access network has. Anything else, as only a misconfigured proxy names, is one source altogether.
 */
export function sourceOf(ip: string): string {
  if (!ipaddr.isValid(ip)) return 'unknown'
  const address = ipaddr.process(ip)
  if (address instanceof ipaddr.IPv6) return address.parts.slice(0, 4).join(':')
  return address.toString()
}
