import { derivedId } from '../../infra/ids.ts'
import type { NetworkSource } from '../../infra/ip/network.ts'
import type { SimulationKey } from '../../infra/wire/collect/simulation.ts'
import type { LearnedAnswers } from '../../projections/answers/learned.ts'
import type { DecisionReason, Verdict } from '../../schemas/events.ts'
import { hostCheckOf, signatureOutcomeOf } from './identity/outcomes.ts'
import type { FindTrusted } from './identity/trusted-directories.ts'
import { alwaysStandardModel, type ModelOf } from './model/in-force.ts'
import { idleAfterMs } from './session/due.ts'
import { type AllowsMinimalMode, documentOf } from './session/facts.ts'
import type { SignatureCheck } from './session/identity.ts'
import { evolve, type SessionEvent, type SessionState } from './session/state.ts'
import { type Evaluation, evaluate } from './signals/evaluate.ts'
import { hashesOf, type RepeatHashes } from './signals/repeats.ts'

/** A decision that an event triggered, based on its session alone. */
export interface Decision {
  /** State after the event and before the decision. */
  state: SessionState
  /** Trace that the event belongs to. */
  traceparent: string | undefined
  trigger: Trigger
  evaluation: Evaluation
  /** End of the period in which the model is known to be in force, epoch milliseconds. */
  modelUntil: number
  hashes: RepeatHashes
}

export interface DecisionSources {
  network: NetworkSource
  learned: LearnedAnswers
  simulationKey?: SimulationKey | undefined
  allowsMinimalMode?: AllowsMinimalMode | undefined
  /** Default: organizations trust only the key directories in the agent catalogue. */
  findTrusted?: FindTrusted | undefined
}

interface DecisionContext extends DecisionSources {
  now: number
  modelOf?: ModelOf | undefined
  /**
   * Ids of sessions that hand off in the same batch. Their provisional decisions are skipped: nobody could read them.
   */
  handingOff?: ReadonlySet<string> | undefined
  /** Adds the outcomes of agent lookups and attestations. */
  enrichState?: ((state: SessionState, event: SessionEvent) => SessionState) | undefined
}

interface Decider {
  /** By session id. */
  newStates: Map<string, SessionState>
  /** Updates the state, and returns a decision if the event triggers one. */
  apply(event: SessionEvent, traceparent?: string): Decision | undefined
}

/** Applies the events of a batch one at a time, so that the caller can yield between them. Does no I/O. */
export function createDecider(
  states: Map<string, SessionState>,
  {
    network,
    now,
    handingOff,
    modelOf = alwaysStandardModel,
    enrichState = (state) => state,
    findTrusted = () => null,
    ...sources
  }: DecisionContext,
): Decider {
  const newStates = new Map<string, SessionState>()

  function apply(event: SessionEvent, traceparent?: string): Decision | undefined {
    const id = event.data.session_id
    const before = newStates.get(id) ?? states.get(id)
    // Scoring deletes only final states, so the session is over and the event is late.
    if (!before && (event.type === 'SessionIdled' || event.type === 'AgentLookedUp')) return
    const state = enrichState(evolve(before, event), event)
    if (state !== before) newStates.set(id, state)
    const trigger = triggerOf({ before, after: state, event })
    if (!trigger || (!trigger.final && handingOff?.has(id))) return
    const { model, until: modelUntil } = modelOf(state.organization_id)
    const input = {
      state,
      network: network.lookup(state.ip_address, now),
      checks: {
        ranges: network,
        host: hostCheckOf(state),
        signature: signatureCheckOf(state, findTrusted),
      },
      ...sources,
    }
    const evaluation = evaluate(input, model)
    const { verdict } = evaluation.score
    // Both verdicts are based on the session alone, because repeats are counted later.
    if (trigger.onlyOnChange && verdict === state.verdict) return
    newStates.set(id, withDecision(state, trigger, verdict))
    const hashes = hashesOf(evaluation.facts)
    return { state, trigger, traceparent, evaluation, modelUntil, hashes }
  }
  return { apply, newStates }
}

function signatureCheckOf(state: SessionState, findTrusted: FindTrusted): SignatureCheck | null {
  const document = documentOf(state)
  const outcome = document && signatureOutcomeOf(document)
  const domain = document?.signature_agent ?? null
  const trusted = domain === null ? null : findTrusted(state.organization_id, domain)
  return outcome && { ...outcome, trusted }
}

export interface Trigger {
  decisionId: string
  reason: DecisionReason
  final: boolean
  /** True if there is a decision only when the verdict changes. */
  onlyOnChange: boolean
  /** Time of the event, epoch milliseconds. */
  at: number
  /** Hash of the document that handed off. */
  handOffDocument?: string
}

interface StateChange {
  before: SessionState | undefined
  after: SessionState
  event: SessionEvent
}

// Returns the trigger of a decision. A hand-off and the end of a session trigger final decisions. The first snapshot
// triggers a provisional one, as does any later batch that changes the verdict before a final decision.
function triggerOf({ before, after, event }: StateChange): Trigger | undefined {
  switch (event.type) {
    case 'ResultRequested':
      return handOffTrigger(before, after, event.data)
    case 'SessionIdled':
      return idleTrigger(after, event.data)
    case 'BatchReceived':
      return batchTrigger(before, after, event.data)
    case 'AgentLookedUp':
      return lookupTrigger(before, after, event.data)
    default:
      return undefined
  }
}

type EventData<T extends SessionEvent['type']> = Extract<SessionEvent, { type: T }>['data']

// A redelivered hand-off leaves the state unchanged and already has its decision.
function handOffTrigger(
  before: SessionState | undefined,
  after: SessionState,
  event: EventData<'ResultRequested'>,
): Trigger | undefined {
  if (after === before) return undefined
  const { decision_id: decisionId, received_at: at, document_id_hash: handOffDocument } = event
  return { decisionId, reason: 'hand_off', final: true, onlyOnChange: false, at, handOffDocument }
}

// Returns undefined if the session is final, or a body arrived after the scheduler found the session idle.
function idleTrigger(after: SessionState, event: EventData<'SessionIdled'>): Trigger | undefined {
  if (after.final) return undefined
  if (event.reason === 'idle' && after.last_activity_at > event.idled_at - idleAfterMs)
    return undefined
  return {
    decisionId: event.decision_id,
    reason: 'idle',
    final: true,
    onlyOnChange: false,
    at: event.idled_at,
  }
}

// Final if the session already has a final decision. Without any decision yet, the next one will use the lookup.
function lookupTrigger(
  before: SessionState | undefined,
  after: SessionState,
  { decision_id: decisionId, looked_up_at: at }: EventData<'AgentLookedUp'>,
): Trigger | undefined {
  if (after === before || after.decisions === 0) return undefined
  const { final, hand_off_document: handOffDocument } = after
  return {
    decisionId,
    reason: 'looked_up',
    final,
    onlyOnChange: false,
    at,
    ...(handOffDocument !== undefined && { handOffDocument }),
  }
}

function batchTrigger(
  before: SessionState | undefined,
  after: SessionState,
  event: EventData<'BatchReceived'>,
): Trigger | undefined {
  const isUnchanged = after === before || after.snapshot === null
  if (isUnchanged || after.final) return undefined
  const decisionId = derivedId('evt', event.event_id)
  const reason = after.decisions > 0 ? 'changed' : 'first'
  return {
    decisionId,
    reason,
    final: false,
    onlyOnChange: reason === 'changed',
    at: event.received_at,
  }
}

function withDecision(state: SessionState, trigger: Trigger, verdict: Verdict): SessionState {
  const final = state.final || trigger.final
  return {
    ...state,
    decisions: state.decisions + 1,
    verdict,
    final,
    final_at: final ? (state.final_at ?? trigger.at) : null,
    ...(trigger.handOffDocument !== undefined && { hand_off_document: trigger.handOffDocument }),
  }
}
