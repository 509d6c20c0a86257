import type { Applied } from '../../infra/event-store/applied.ts'
import { createLru } from '../../infra/lru.ts'
import { decisionRowOf } from '../../projections/sessions/stored-event.ts'
import type { FullDecisionRow } from '../../projections/sessions/tables.ts'
import type { SessionScored } from '../../schemas/events.ts'

export interface OwnDecisions {
  /** Called when the log has the decision. */
  note(decision: SessionScored): void
  /**
   * Returns decisions that the read model has, and forgets them. Those that this process did not make are read by
   * `read`.
   */
  take(
    ids: string[],
    read: (ids: string[]) => Promise<FullDecisionRow[]>,
  ): Promise<FullDecisionRow[]>
}

// Some kilobytes each. They wait for their read model, which takes milliseconds.
const maxDecisions = 500

/** Decisions of hand-offs that this process made, so that it need not read what it has just written. */
export function createOwnDecisions({ onChange }: Pick<Applied, 'onChange'>): OwnDecisions {
  const made = createLru<string, { decision: SessionScored; isReadable: boolean }>(maxDecisions)
  // Whoever opens the token reads the session next, so that the token must not come before the read model.
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
    async take(ids, read) {
      const found = new Map<string, FullDecisionRow>()
      for (const id of ids) {
        const entry = made.get(id)
        if (entry?.isReadable) found.set(id, decisionRowOf(entry.decision))
      }
      for (const id of found.keys()) made.delete(id)
      const others = ids.filter((id) => !found.has(id))
      return [...found.values(), ...(others.length > 0 ? await read(others) : [])]
    },
  }
}
