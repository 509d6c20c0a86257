import type { Clock } from '../ids.ts'
import { createLru } from '../lru.ts'

/** What all parties together requested and got in the window. */
export interface Totals {
  requested: number
  granted: number
}

// A request counts as no more than this after fourteen windows.
const forgotten = 1e-6

export type FairShare = ReturnType<typeof createFairShare>

/**
 * Divides what is short among those that request it, in this process. Whoever requests less than an equal share is
 * refused nothing, and what they leave is divided equally among the others (max-min fairness). So it makes no
 * difference to them how much somebody else requests. Requests count less and less: they decay exponentially, with
 * `windowMs` (milliseconds) as the time constant. The parties that requested last are remembered.
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
    const all = [...parties.values()].map(decayed)
    const requested = all.map((party) => party.requested)
    const granted = sum(all.map((party) => party.granted))
    return fairLevel(requested, available({ requested: sum(requested), granted }))
  }

  return {
    /** Whether nobody but the party has requested anything in the last fourteen windows. */
    isOnly(name: string): boolean {
      for (const [other, party] of parties.entries()) {
        if (other === name) continue
        if (decayed(party).requested >= forgotten) return false
        parties.delete(other)
      }
      return true
    },
    /**
     * Whether the party gets one more. `available` says how much all together may have in the window, from what they
     * requested and got in it; without it, as nothing is short, they get it.
     */
    admits(name: string, available?: (totals: Totals) => number): boolean {
      const party = decayed(parties.get(name) ?? { requested: 0, granted: 0, at: clock() })
      party.requested++
      parties.set(name, party)
      const isAdmitted = !available || party.granted + 1 <= levelOf(available)
      if (isAdmitted) party.granted++
      return isAdmitted
    },
  }
}

const sum = (some: readonly number[]) => some.reduce((all, one) => all + one, 0)

/** The most that anybody gets where `total` is divided: infinite where that is enough for all requests. */
export function fairLevel(requested: readonly number[], total: number): number {
  let level = 0
  for (let satisfied = -1; ; ) {
    const below = requested.filter((some) => some <= level)
    if (below.length === requested.length) return Number.POSITIVE_INFINITY
    if (below.length === satisfied) return level
    satisfied = below.length
    level = Math.max(0, (total - sum(below)) / (requested.length - satisfied))
  }
}
