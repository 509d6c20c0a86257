import type { Network, Repeats } from '../../../schemas/events.ts'
import { startDecisions } from '../../scoring/decide.ts'
import type { ScoringModel } from '../../scoring/model/model.ts'
import { nothingLearned } from '../../scoring/session/answers.ts'
import type { SessionEvent } from '../../scoring/session/state.ts'
import { asRecorded } from '../../scoring/signals/evaluate.ts'
import type { FactRow } from './compare.ts'

/** The newest final decision about a session. */
export interface RecordedDecision {
  row: FactRow & { signals: string }
  decisionId: string
  /** Epoch milliseconds. */
  openedAt: number
  network: Network
  repeats: Repeats | null
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
export function startReplay(recorded: RecordedDecision, { model, allowsMinimal }: Conditions): Replay {
  const { decisionId, openedAt, network, repeats, row } = recorded
  const { apply, decisions } = startDecisions(new Map(), {
    ...{ now: row.evaluated_at, learned: nothingLearned, allowsMinimal: () => allowsMinimal },
    network: { missing: [], lookup: () => ({ ...network, sources: [] }) },
    modelOf: () => ({ model, until: Infinity }),
    isRequested: (trigger) => trigger.decisionId === decisionId,
  })
  let isWhole: boolean | undefined

  return {
    apply(event) {
      isWhole ??= event.type === 'SessionOpened'
      if (!isWhole) return 'expired'
      apply(event)
      const [decision] = decisions
      if (!decision) return undefined
      if (decision.state.created_at !== openedAt) return 'incomplete'
      const fired = new Set(row.signals.split(' '))
      const { score, fired: now } = asRecorded(decision.evaluation, { fired, repeats })
      return { model, signals: now.map(({ slug }) => slug), risk: score.risk, verdict: score.verdict }
    },
  }
}
