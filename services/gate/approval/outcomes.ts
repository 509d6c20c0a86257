import { createRowWaiter } from '../../../infra/event-store/row-waiter.ts'
import type { GateSessionId } from '../../../infra/ids.ts'
import type { GateSessionRow } from '../../../projections/gate/tables.ts'

export interface OutcomesOptions {
  find: (gateSessionId: GateSessionId) => Promise<GateSessionRow | undefined>
  /** Calls back whenever the read model of Gate has moved on; returns how to stop that. */
  onAdvance: (listener: () => void) => () => void
  /** Milliseconds between looks when nothing is heard of the read model (default 250). */
  pollMs?: number
}

export interface Outcomes {
  /** The session once it is not pending any more, or as it is after so many milliseconds; whichever process ended it. */
  waitFor(gateSessionId: GateSessionId, ms: number): Promise<GateSessionRow | undefined>
  close(): void
}

/** Waits with one query at a time for each session, however many wait for it. */
export function createOutcomes({ find, onAdvance, pollMs }: OutcomesOptions): Outcomes {
  const sessions = createRowWaiter<GateSessionId, GateSessionRow>({
    onAdvance,
    pollMs,
    look: (ids, found) =>
      Promise.allSettled(
        ids.map(async (id) => {
          const session = await find(id)
          if (session && session.status !== 'pending') found(id, session)
        }),
      ),
  })
  return {
    waitFor: (id, ms) => sessions.waitFor(id, { ms, late: () => find(id) }),
    close: sessions.close,
  }
}
