import type { Applied } from '../../infra/event-store/applied.ts'
import { createLru } from '../../infra/lru.ts'
import type { SessionScored } from '../../schemas/events.ts'

export interface OwnDecisions {
  /** Called when the log has the decision. */
  note(decision: SessionScored): void
  /** Returns those of the decisions that this process made and the read model has, and forgets them. */
  take(ids: string[]): SessionScored[]
}

// Some kilobytes each. One waits for its read model, which takes milliseconds.
const maxDecisions = 500

/** Decisions of hand-offs that this process made, so that it need not read what it has just written. */
export function createOwnDecisions({ onChange }: Pick<Applied, 'onChange'>): OwnDecisions {
  const made = createLru<string, { decision: SessionScored; isReadable: boolean }>(maxDecisions)
  // A back end that opens the token reads the session next, and would get 404 before the read model has it.
  onChange('sessions', (ids) => {
    for (const id of ids ?? []) {
      const entry = made.get(id)
      if (entry) entry.isReadable = true
    }
  })
  return {
    note(decision) {
      const { event_id: id, reason } = decision
      // The first record of an id counts, also in the read model.
      if (reason === 'hand_off' && !made.has(id)) made.set(id, { decision, isReadable: false })
    },
    take(ids) {
      const found = ids.flatMap((id) => {
        const entry = made.get(id)
        return entry?.isReadable ? [entry.decision] : []
      })
      for (const { event_id } of found) made.delete(event_id)
      return found
    },
  }
}
