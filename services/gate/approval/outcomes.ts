import type { GateSessionId } from '../../../infra/ids.ts'
import type { GateSessionRow } from '../../../projections/gate/rows.ts'

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

type Listener = (session: GateSessionRow) => void

/** Waits with one query at a time for each session, however many wait for it. */
export function createOutcomes({ find, onAdvance, pollMs = 250 }: OutcomesOptions): Outcomes {
  const waiting = new Map<GateSessionId, Set<Listener>>()
  let looking = false
  let lookAgain = false

  async function look(): Promise<void> {
    lookAgain = true
    if (looking) return
    looking = true
    while (lookAgain && waiting.size > 0) {
      lookAgain = false
      await Promise.all([...waiting].map(([id, listeners]) => lookAt(id, listeners)))
    }
    looking = false
  }

  async function lookAt(id: GateSessionId, listeners: Set<Listener>): Promise<void> {
    // A failed look is not the end: the next one, or the time-out, decides.
    const session = await find(id).catch(() => undefined)
    if (!session || session.status === 'pending') return
    for (const listener of listeners) listener(session)
  }

  function forget(id: GateSessionId, listener: Listener): void {
    const listeners = waiting.get(id)
    listeners?.delete(listener)
    if (listeners?.size === 0) waiting.delete(id)
  }

  const stop = onAdvance(() => void look())
  const timer = setInterval(() => void look(), pollMs)
  timer.unref()

  return {
    async waitFor(id, ms) {
      const { promise, resolve } = Promise.withResolvers<GateSessionRow | undefined>()
      const listeners = waiting.get(id) ?? new Set()
      waiting.set(id, listeners.add(resolve))
      const timeUp = setTimeout(() => resolve(undefined), ms)
      void look()
      const ended = await promise
      clearTimeout(timeUp)
      forget(id, resolve)
      return ended ?? find(id)
    },
    close() {
      stop()
      clearInterval(timer)
    },
  }
}
