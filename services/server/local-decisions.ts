import type { AppliedOffsets } from '../../infra/event-store/applied.ts'
import { createLru } from '../../infra/lru.ts'
import type { SessionScored } from '../../schemas/events.ts'

export interface LocalDecisions {
  /** Called when the decision is on the log. */
  add(decision: SessionScored): void
  /** Removes and returns the decisions that were made here and are in the read model. */
  take(ids: string[]): SessionScored[]
}

// A few kilobytes each. A decision is kept until the read model has it, usually for milliseconds.
const maxDecisions = 500

/** Caches the hand-off decisions of this process, so that a hand-off need not read them from the database. */
export function createLocalDecisions({
  onChange,
}: Pick<AppliedOffsets, 'onChange'>): LocalDecisions {
  const cache = createLru<string, { decision: SessionScored; isReadable: boolean }>(maxDecisions)
  // Withheld until the read model has them: a back end that opens the token reads the session next and would get 404.
  onChange('sessions', (ids) => {
    for (const id of ids ?? []) {
      const entry = cache.get(id)
      if (entry) entry.isReadable = true
    }
  })
  return {
    add(decision) {
      const { event_id: id, reason } = decision
      // As in the read model, the first record of an id counts.
      if (reason === 'hand_off' && !cache.has(id)) cache.set(id, { decision, isReadable: false })
    },
    take(ids) {
      const readable = ids.flatMap((id) => {
        const entry = cache.get(id)
        return entry?.isReadable ? [entry.decision] : []
      })
      for (const { event_id } of readable) cache.delete(event_id)
      return readable
    },
  }
}
