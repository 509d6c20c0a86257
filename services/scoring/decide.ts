import { derivedId } from '../../infra/ids.ts'
import type { NetworkSource } from '../../infra/ip/network.ts'
import type { SimulationKey } from '../../infra/wire/collect/simulation.ts'
import type { Verdict } from '../../schemas/events.ts'
import type { LearnedAnswers } from './session/answers.ts'
import type { AllowsMinimal } from './session/facts.ts'
import { evolve, type SessionEvent, type SessionState } from './session/state.ts'
import { type Hashes, hashesOf } from './signals/repeats.ts'
import { type Evaluation, evaluate } from './signals/score.ts'

export interface Draft {
  state: SessionState
  /** Of the event that asked for it. */
  traceparent: string | undefined
  trigger: Trigger
  evaluation: Evaluation
  hashes: Hashes
}

export interface Drafts {
  changed: Map<string, SessionState>
  drafts: Draft[]
}

interface Drafting extends Drafts {
  // `traceparent`: the trace that a decision belongs to which the event asks for.
  apply(event: SessionEvent, traceparent?: string): void
}

interface DraftInput {
  known: Map<string, SessionState>
  network: NetworkSource
  learned: LearnedAnswers
  simulationKey?: SimulationKey | undefined
  allowsMinimal?: AllowsMinimal | undefined
  now: number
}

/** Goes through a partition's events, one at a time so that a caller can pause between them. No I/O. */
export function startDrafting({ known, ...sources }: DraftInput): Drafting {
  const changed = new Map<string, SessionState>()
  const drafts: Draft[] = []

  function apply(event: SessionEvent, traceparent?: string): void {
    const id = event.data.session_id
    const before = changed.get(id) ?? known.get(id)
    // Already forgotten, so it was final; ended once more while scoring was behind.
    if (!before && event.type === 'SessionIdled') return
    const after = evolve(before, event)
    if (after !== before) changed.set(id, after)
    const trigger = triggerOf({ before, after, event })
    const draft = trigger && draftOf({ state: after, trigger, traceparent, ...sources })
    if (!draft) return
    drafts.push(draft)
    changed.set(id, withDecision(after, draft.trigger, draft.evaluation.score.verdict))
  }
  return { apply, changed, drafts }
}

interface DraftOf extends Omit<DraftInput, 'known'> {
  state: SessionState
  trigger: Trigger
  traceparent: string | undefined
}

function draftOf({ state, trigger, traceparent, network, now, ...known }: DraftOf): Draft | undefined {
  const evaluation = evaluate({ state, network: network.lookup(state.ip_address, now), ...known })
  // What others did is looked up for decisions only, so that both verdicts are of what the session itself shows.
  const isSame = evaluation.score.verdict === state.verdict
  if (trigger.onlyOnChange && isSame) return undefined
  return { state, trigger, traceparent, evaluation, hashes: hashesOf(evaluation.facts) }
}

export const idleAfterMs = 30 * 60 * 1000

export interface Trigger {
  decisionId: string
  final: boolean
  /** Only a changed verdict makes a decision. */
  onlyOnChange: boolean
  at: number
  /** Hash of the document that handed off. */
  handOffDocument?: string
}

interface StateChange {
  before: SessionState | undefined
  after: SessionState
  event: SessionEvent
}

// What an event asks for. A hand-off and the end of a session make final decisions. The first snapshot makes a
// provisional one. So does any later batch that changes the verdict, until a final decision was made.
function triggerOf({ before, after, event }: StateChange): Trigger | undefined {
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

// A redelivered body of a hand-off has its decision already; the session's first event is never a repeat.
function handOff(
  before: SessionState | undefined,
  after: SessionState,
  event: Data<'ResultRequested'>,
): Trigger | undefined {
  if (after === before) return undefined
  const { decision_id: decisionId, received_at: at, document_id_hash: handOffDocument } = event
  return { decisionId, final: true, onlyOnChange: false, at, handOffDocument }
}

// Ignored when the session is final or a body arrived after the scheduler looked.
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

function withDecision(state: SessionState, trigger: Trigger, verdict: Verdict): SessionState {
  const final = state.final || trigger.final
  return {
    ...state,
    decisions: state.decisions + 1,
    verdict,
    final,
    final_at: final ? (state.final_at ?? trigger.at) : null,
  }
}
