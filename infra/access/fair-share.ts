import type { Clock } from '../ids.ts'
import { createLru } from '../lru.ts'

/** Sums over all parties in the window. */
export interface Totals {
  requested: number
  granted: number
}

// A request stops counting when it has decayed to this weight, after fourteen windows.
const minWeight = 1e-6

export type FairShare = ReturnType<typeof createFairShare>

/**
 * Creates an in-process max-min fair divider of a scarce resource. A party that requests less than an equal share
 * is never refused; the rest is divided equally among the others. So one party's load cannot starve another.
 * Requests and grants decay exponentially with the time constant `windowMs`. The `maxParties` most recent are tracked.
 */
export function createFairShare({
  clock,
  windowMs,
  maxParties = 1000,
}: {
  clock: Clock
  windowMs: number
  maxParties?: number
}) {
  const parties = createLru<string, Totals & { at: number }>(maxParties)

  function decayed({ requested, granted, at }: Totals & { at: number }) {
    const now = clock()
    const left = Math.exp(-Math.max(0, now - at) / windowMs)
    return { requested: requested * left, granted: granted * left, at: now }
  }

  function levelOf(available: (totals: Totals) => number): number {
    const current = [...parties.values()].map(decayed)
    const requested = current.map((party) => party.requested)
    const granted = sum(current.map((party) => party.granted))
    return fairLevel(requested, available({ requested: sum(requested), granted }))
  }

  return {
    /** Returns true if no other party requested anything in the last fourteen windows. */
    isOnlyParty(name: string): boolean {
      for (const [key, party] of parties.entries()) {
        if (key === name) continue
        if (decayed(party).requested >= minWeight) return false
        parties.delete(key)
      }
      return true
    },
    /**
     * Counts a request of the party and returns whether it is granted. `available` returns what all parties together
     * may get in the window; without it nothing is scarce and the request is granted.
     */
    admit(name: string, available?: (totals: Totals) => number): boolean {
      const party = decayed(parties.get(name) ?? { requested: 0, granted: 0, at: clock() })
      party.requested++
      parties.set(name, party)
      const isAdmitted = !available || party.granted + 1 <= levelOf(available)
      if (isAdmitted) party.granted++
      return isAdmitted
    },
  }
}

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0)

/** Returns the most that any party gets when `total` is divided: infinite if `total` covers all requests. */
export function fairLevel(requested: readonly number[], total: number): number {
  let level = 0
  for (let satisfied = -1; ; ) {
    const below = requested.filter((amount) => amount <= level)
    if (below.length === requested.length) return Number.POSITIVE_INFINITY
    if (below.length === satisfied) return level
    satisfied = below.length
    level = Math.max(0, (total - sum(below)) / (requested.length - satisfied))
  }
}
