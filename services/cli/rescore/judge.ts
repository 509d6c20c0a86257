import type { Network, Repeats, SessionAgent, SessionAttestation } from '../../../schemas/events.ts'
import { foldSessions } from '../../scoring/decide.ts'
import type { ScoringModel } from '../../scoring/model/model.ts'
import type { SessionEvent, SessionState } from '../../scoring/session/state.ts'
import { evaluateAsRecorded } from '../../scoring/signals/evaluate.ts'
import type { FactRow } from './compare.ts'

/** The newest final decision about a session. */
export interface RecordedDecision {
  row: FactRow & { signals: string }
  decisionId: string
  /** Epoch milliseconds. */
  openedAt: number
  network: Network
  repeats: Repeats | null
  agent: SessionAgent | null
  attestation: SessionAttestation | null
}

/** What decided beside the session's own events, at the time of the decision. */
export interface Conditions {
  model: ScoringModel
  allowsMinimal: boolean
}

/**
 * `erased`: its key is gone. `expired`: the log has no longer all of its observations. `incomplete`: it was decided without
 * some that the log has, or the log lacks what asked for the decision.
 */
export type NotJudged = 'erased' | 'expired' | 'incomplete'

export interface Judged {
  model: ScoringModel
  signals: string[]
  risk: number
  verdict: FactRow['verdict']
}

/** Gets the events of one session in their order. */
export interface Replay {
  /** Returns what becomes of the decision, once its event comes. */
  apply(event: SessionEvent): Judged | NotJudged | undefined
}

/** Decides as scoring does, with what the decision recorded of others. */
export function startReplay(recorded: RecordedDecision, conditions: Conditions): Replay {
  let outcome: Judged | NotJudged | undefined
  let isWhole: boolean | undefined
  const { apply } = foldSessions(new Map(), ({ state, trigger }) => {
    if (trigger.decisionId !== recorded.decisionId) return null
    outcome = state.created_at === recorded.openedAt ? judged(state, recorded, conditions) : 'incomplete'
    return null
  })

  return {
    apply(event) {
      isWhole ??= event.type === 'SessionOpened'
      if (!isWhole) return 'expired'
      apply(event)
      return outcome
    },
  }
}

function judged(
  state: SessionState,
  { row, network, repeats, agent, attestation }: RecordedDecision,
  { model, allowsMinimal }: Conditions,
): Judged {
  const input = { state, network: { ...network, sources: [] }, allowsMinimal: () => allowsMinimal }
  const fired = new Set(row.signals.split(' '))
  const { score, fired: now } = evaluateAsRecorded(input, model, { fired, repeats, agent, attestation })
  return { model, signals: now.map(({ slug }) => slug), risk: score.risk, verdict: score.verdict }
}
