import { derivedId } from '../../infra/ids.ts'
import type { NetworkSource } from '../../infra/ip/network.ts'
import type { SimulationKey } from '../../infra/wire/collect/simulation.ts'
import type { LearnedAnswers } from '../../projections/answers/learned.ts'
import type { DecisionReason, Verdict } from '../../schemas/events.ts'
import { hostCheckOf, signatureOutcomeOf } from './identity/outcomes.ts'
import type { FindTrusted } from './identity/trusted.ts'
import { alwaysStandard, type ModelOf } from './model/in-force.ts'
import { idleAfterMs } from './session/due.ts'
import { type AllowsMinimal, documentOf } from './session/facts.ts'
import type { SignatureCheck } from './session/identity.ts'
import { evolve, type SessionEvent, type SessionState } from './session/state.ts'
import { type Evaluation, evaluate } from './signals/evaluate.ts'
import { type Hashes, hashesOf } from './signals/repeats.ts'

/** A decision that an event asks for, by what its session says itself. */
export interface Decision {
  /** With the event, and before the decision. */
  state: SessionState
  /** The trace that the event belongs to. */
  traceparent: string | undefined
  trigger: Trigger
  evaluation: Evaluation
  /** From then on the organization's decisions may be made by another model. */
  modelUntil: number
  hashes: Hashes
}

export interface DecisionSources {
  network: NetworkSource
  learned: LearnedAnswers
  simulationKey?: SimulationKey | undefined
  allowsMinimal?: AllowsMinimal | undefined
  /** Default: no organization trusts other directories of agents' keys than the catalogue. */
  findTrusted?: FindTrusted | undefined
}

interface DecidingAt extends DecisionSources {
  now: number
  modelOf?: ModelOf | undefined
  /** Ids of sessions that hand off in the same batch: until then nobody could read a provisional decision. */
  handingOff?: ReadonlySet<string> | undefined
  /** Adds what was found of the session's agent. */
  withOutcomes?: ((state: SessionState, event: SessionEvent) => SessionState) | undefined
}

interface Deciding {
  /** By session id. */
  changed: Map<string, SessionState>
  decisions: Decision[]
  /** `traceparent`: the trace that the event belongs to. */
  apply(event: SessionEvent, traceparent?: string): void
}

/** Goes through a partition's events, one at a time so that a caller can pause between them. No I/O. */
export function startDecisions(
  known: Map<string, SessionState>,
  {
    network,
    now,
    handingOff,
    modelOf = alwaysStandard,
    withOutcomes = (state) => state,
    findTrusted = () => null,
    ...sources
  }: DecidingAt,
): Deciding {
  const changed = new Map<string, SessionState>()
  const decisions: Decision[] = []

  function apply(event: SessionEvent, traceparent?: string): void {
    const id = event.data.session_id
    const before = changed.get(id) ?? known.get(id)
    // A session that scoring has forgotten was final. The event ends it once more, because scoring was behind.
    if (!before && (event.type === 'SessionIdled' || event.type === 'AgentLookedUp')) return
    const state = withOutcomes(evolve(before, event), event)
    if (state !== before) changed.set(id, state)
    const trigger = triggerOf({ before, after: state, event })
    if (!trigger || (!trigger.final && handingOff?.has(id))) return
    const { model, until: modelUntil } = modelOf(state.organization_id)
    const input = {
      state,
      network: network.lookup(state.ip_address, now),
      checks: {
        ranges: network,
        hosts: hostCheckOf(state),
        signature: signatureCheckOf(state, findTrusted),
      },
      ...sources,
    }
    const evaluation = evaluate(input, model)
    const { verdict } = evaluation.score
    // What others did is counted for decisions only, so both verdicts are of what the session says itself.
    if (trigger.onlyOnChange && verdict === state.verdict) return
    const hashes = hashesOf(evaluation.facts)
    decisions.push({ state, trigger, traceparent, evaluation, modelUntil, hashes })
    changed.set(id, withDecision(state, trigger, verdict))
  }
  return { apply, changed, decisions }
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

// Which decision an event asks for. A hand-off and the end of a session make final decisions. The first snapshot makes a
// provisional one. So does any later batch that changes the verdict, until a final decision was made.
function triggerOf({ before, after, event }: StateChange): Trigger | undefined {
  switch (event.type) {
    case 'ResultRequested':
      return handOff(before, after, event.data)
    case 'SessionIdled':
      return idled(after, event.data)
    case 'BatchReceived':
      return batch(before, after, event.data)
    case 'AgentLookedUp':
      return lookedUp(before, after, event.data)
    default:
      return undefined
  }
}

type Data<T extends SessionEvent['type']> = Extract<SessionEvent, { type: T }>['data']

// A redelivered body of a hand-off changes nothing, because it has its decision already.
function handOff(
  before: SessionState | undefined,
  after: SessionState,
  event: Data<'ResultRequested'>,
): Trigger | undefined {
  if (after === before) return undefined
  const { decision_id: decisionId, received_at: at, document_id_hash: handOffDocument } = event
  return { decisionId, reason: 'hand_off', final: true, onlyOnChange: false, at, handOffDocument }
}

// Nothing where the session is final, or a body arrived after the scheduler found it idle.
function idled(after: SessionState, event: Data<'SessionIdled'>): Trigger | undefined {
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

// As final as the decisions that it comes after; nothing where none was made, because the next one has it.
function lookedUp(
  before: SessionState | undefined,
  after: SessionState,
  { decision_id: decisionId, looked_up_at: at }: Data<'AgentLookedUp'>,
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

function batch(
  before: SessionState | undefined,
  after: SessionState,
  event: Data<'BatchReceived'>,
): Trigger | undefined {
  const hasNothingNew = after === before || after.snapshot === null
  if (hasNothingNew || after.final) return undefined
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
