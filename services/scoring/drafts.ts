import type { NetworkSource } from '../../infra/ip/network.ts'
import { decided, type Trigger, triggerOf } from './decide-session.ts'
import { type Evaluation, evaluate } from './evaluate.ts'
import { evolve, type SessionEvent, type SessionState } from './session-state.ts'

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

export interface Drafting extends Drafts {
  /** Applies the partition's next event to its session and drafts the decision that it asks for. */
  take(event: SessionEvent): void
}

export interface DraftInput {
  known: Map<string, SessionState>
  network: NetworkSource
  now: number
}

/** Goes through a partition's events, one at a time so that a caller can pause between them. No I/O. */
export function startDrafting({ known, network, now }: DraftInput): Drafting {
  const changed = new Map<string, SessionState>()
  const drafts: Draft[] = []

  function take(event: SessionEvent): void {
    const id = event.data.session_id
    const before = changed.get(id) ?? known.get(id)
    // Already forgotten, so it was final; ended once more while scoring was behind.
    if (!before && event.type === 'SessionIdled') return
    const after = evolve(before, event)
    if (after !== before) changed.set(id, after)
    const trigger = triggerOf({ before, after, event })
    const draft = trigger && draftOf({ state: after, trigger, network, now })
    if (!draft) return
    drafts.push(draft)
    changed.set(id, decided(after, draft.trigger, draft.evaluation.score.verdict))
  }
  return { take, changed, drafts }
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
