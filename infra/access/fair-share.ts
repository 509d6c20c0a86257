import { LRUCache } from 'lru-cache'
import type { Clock } from '../ids.ts'

export interface FairShareOptions {
  clock: Clock
  /** For how long what a party asked for counts, milliseconds: it decays exponentially, with this time constant. */
  windowMs: number
  /** Parties remembered (default 1000): those that asked last. */
  maxParties?: number
}

/**
 * Divides what is short among those that ask for it, in this process. Whoever asks for less than an equal share is
 * refused nothing, and what they leave is divided equally among the others (max-min fairness). So it makes no
 * difference to them how much somebody else asks for.
 */
export interface FairShare {
  /** Whether nobody but the party has asked in the last fourteen windows. */
  isAlone(party: string): boolean
  /**
   * Whether the party gets one more. `total` says how much all together may have had in the window, from what they asked
   * for and had in it; without it, as nothing is short, they get it.
   */
  admits(party: string, total?: (sofar: SoFar) => number): boolean
}

/** Of all parties together, in the window. */
export interface SoFar {
  asked: number
  had: number
}

/** What a party asked for and what it had, as of `at`. */
interface Party {
  asked: number
  had: number
  at: number
}

// Of one that was asked for, this is left after fourteen windows.
const forgotten = 1e-6

export function createFairShare({ clock, windowMs, maxParties = 1000 }: FairShareOptions): FairShare {
  const parties = new LRUCache<string, Party>({ max: maxParties })

  function decayed({ asked, had, at }: Party): Party {
    const now = clock()
    const left = Math.exp(-Math.max(0, now - at) / windowMs)
    return { asked: asked * left, had: had * left, at: now }
  }

  function levelOf(total: (sofar: SoFar) => number): number {
    const all = [...parties.values()].map(decayed)
    const asked = all.map((party) => party.asked)
    return fairLevel(asked, total({ asked: sum(asked), had: sum(all.map((party) => party.had)) }))
  }

  return {
    isAlone(name) {
      for (const [other, party] of parties.entries()) {
        if (other === name) continue
        if (decayed(party).asked >= forgotten) return false
        parties.delete(other)
      }
      return true
    },
    admits(name, total) {
      const party = decayed(parties.get(name) ?? { asked: 0, had: 0, at: clock() })
      party.asked++
      parties.set(name, party)
      const isAdmitted = !total || party.had + 1 <= levelOf(total)
      if (isAdmitted) party.had++
      return isAdmitted
    },
  }
}

const sum = (some: readonly number[]) => some.reduce((all, one) => all + one, 0)

/** The most that anybody gets where `total` is divided: infinite where that is enough for all that is asked for. */
export function fairLevel(asked: readonly number[], total: number): number {
  let level = 0
  for (let satisfied = -1; ; ) {
    const below = asked.filter((some) => some <= level)
    if (below.length === asked.length) return Number.POSITIVE_INFINITY
    if (below.length === satisfied) return level
    satisfied = below.length
    level = Math.max(0, (total - sum(below)) / (asked.length - satisfied))
  }
}
