import { derivedId } from '../../infra/ids.ts'
import type { Verdict } from '../../schemas/events.ts'
import type { SessionEvent, SessionState } from './session-state.ts'

export const idleAfterMs = 30 * 60 * 1000
export const sessionLifetimeMs = 24 * 60 * 60 * 1000

/** Why a session is evaluated now. */
export interface Trigger {
  decisionId: string
  final: boolean
  /** Only a changed verdict makes a decision. */
  onlyOnChange: boolean
  /** When it happened, epoch milliseconds. */
  at: number
}

export interface Change {
  before: SessionState | undefined
  after: SessionState
  event: SessionEvent
}

/**
 * What an event asks for. A hand-off and the end of a session make final decisions; the first snapshot makes a
 * provisional one, and so does any later batch that changes the verdict, until a final decision was made.
 */
export function triggerOf({ before, after, event }: Change): Trigger | undefined {
  switch (event.type) {
    case 'ResultRequested':
      return handOff(before, after, event.data)
    case 'SessionIdled':
      return idled(after, event.data)
    case 'BatchReceived':
      return batch(before, after, event.data)
    default:
      return undefined
  }
}

type Data<T extends SessionEvent['type']> = Extract<SessionEvent, { type: T }>['data']

/** A redelivered body of a hand-off has its decision already; the session's first event is never a repeat. */
function handOff(
  before: SessionState | undefined,
  after: SessionState,
  event: Data<'ResultRequested'>,
): Trigger | undefined {
  if (after === before) return undefined
  return { decisionId: event.decision_id, final: true, onlyOnChange: false, at: event.received_at }
}

/** Ignored when the session is final or a body arrived after the scheduler looked. */
function idled(after: SessionState, event: Data<'SessionIdled'>): Trigger | undefined {
  if (after.final) return undefined
  if (event.reason === 'idle' && after.last_activity_at > event.idled_at - idleAfterMs) return undefined
  return { decisionId: event.decision_id, final: true, onlyOnChange: false, at: event.idled_at }
}

function batch(
  before: SessionState | undefined,
  after: SessionState,
  event: Data<'BatchReceived'>,
): Trigger | undefined {
  const hasNothingNew = after === before || after.snapshot === null
  if (hasNothingNew || after.final) return undefined
  const decisionId = derivedId('evt', event.event_id)
  return { decisionId, final: false, onlyOnChange: after.decisions > 0, at: event.received_at }
}

/** The state once the decision is made; final stays final. */
export function decided(state: SessionState, trigger: Trigger, verdict: Verdict): SessionState {
  const final = state.final || trigger.final
  return {
    ...state,
    decisions: state.decisions + 1,
    verdict,
    final,
    final_at: final ? (state.final_at ?? trigger.at) : null,
  }
}
