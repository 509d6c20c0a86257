import type { BucketStore, SharedBucket } from '../../../../../infra/access/rate-limit/shared-bucket.ts'

/** What becomes of a round trip. */
export interface Fate {
  /** How far the change gets: not even begun, computed but rolled back, or committed. */
  change: 'none' | 'undone' | 'done'
  /** Whether the caller hears of a change that is done; of any other it hears that it failed. */
  isAnswered: boolean
  /** It ends when it is released. */
  isLate: boolean
}

export const healthy: Fate = { change: 'done', isAnswered: true, isLate: false }
export const late: Fate = { ...healthy, isLate: true }
export const refused: Fate = { change: 'none', isAnswered: false, isLate: false }
export const undone: Fate = { change: 'undone', isAnswered: false, isLate: false }
export const lost: Fate = { change: 'done', isAnswered: false, isLate: false }

/** Buckets in memory whose round trips end as they are told to. */
export function createScriptedStore({ clock }: { clock: () => number }) {
  const rows = new Map<string, string>()
  const held = new Set<() => void>()
  let script: (bucketId: string) => Fate = () => healthy
  let roundTrips = 0
  let running = 0
  let mostRunning = 0

  const store: BucketStore = {
    async update(bucketId, change) {
      const fate = script(bucketId)
      roundTrips++
      mostRunning = Math.max(mostRunning, ++running)
      const text = rows.get(bucketId)
      const row = text === undefined ? undefined : JSON.parse(text)
      const changed = fate.change === 'none' ? undefined : change(row, clock())
      if (changed && fate.change === 'done') rows.set(bucketId, JSON.stringify(changed.row))
      if (fate.isLate) await new Promise<void>((resolve) => held.add(resolve))
      running--
      if (!changed || fate.change !== 'done' || !fate.isAnswered) throw new Error('as scripted')
      return changed.result
    },
  }
  return {
    store,
    /** From now on. */
    script(next: (bucketId: string) => Fate): void {
      script = next
    },
    /** Ends all that is late. */
    release(): void {
      for (const end of held) end()
      held.clear()
    },
    roundTrips: () => roundTrips,
    mostRunning: () => mostRunning,
    row(bucketId: string): SharedBucket {
      return JSON.parse(rows.get(bucketId) ?? 'null')
    },
  }
}
