import type { RecordedEvent } from '../../schemas/codec.ts'
import { decided, type Trigger, triggerOf } from './decide-session.ts'
import { type Evaluation, evaluate } from './evaluate.ts'
import type { NetworkSource } from './network.ts'
import { evolve, isSessionEvent, type SessionState } from './session-state.ts'

/** A decision that lacks only its visitor. */
export interface Draft {
  state: SessionState
  trigger: Trigger
  evaluation: Evaluation
}

export interface Drafts {
  /** The states that changed, by session. */
  changed: Map<string, SessionState>
  /** In the order of the events that asked for them. */
  drafts: Draft[]
}

export interface DraftInput {
  events: RecordedEvent[]
  known: Map<string, SessionState>
  network: NetworkSource
  now: number
}

/** Applies a partition's events to the states known and drafts the decisions that they ask for. Pure. */
export function draftDecisions({ events, known, network, now }: DraftInput): Drafts {
  const changed = new Map<string, SessionState>()
  const drafts: Draft[] = []
  for (const event of events) {
    if (!isSessionEvent(event)) continue
    const id = event.data.session_id
    const before = changed.get(id) ?? known.get(id)
    const after = evolve(before, event)
    if (after !== before) changed.set(id, after)
    const trigger = triggerOf({ before, after, event })
    const draft = trigger && draftOf({ state: after, trigger, network, now })
    if (!draft) continue
    drafts.push(draft)
    changed.set(id, decided(after, draft.trigger, draft.evaluation.score.verdict))
  }
  return { changed, drafts }
}

interface DraftOf {
  state: SessionState
  trigger: Trigger
  network: NetworkSource
  now: number
}

function draftOf({ state, trigger, network, now }: DraftOf): Draft | undefined {
  const evaluation = evaluate({ state, network: network.lookup(state.ip_address, now) })
  const isSame = evaluation.score.verdict === state.verdict
  return trigger.onlyOnChange && isSame ? undefined : { state, trigger, evaluation }
}
