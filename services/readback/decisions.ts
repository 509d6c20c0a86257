import type { DecisionRow, LinkedVisitor } from '../../projections/sessions/rows.ts'
import type { Verdict } from '../../schemas/events.ts'
import type { DetailDecision } from './schemas/session-detail.ts'

/** Epoch milliseconds as the API shows them. */
export function iso(time: number): string {
  return new Date(time).toISOString()
}

const automationStatus = {
  bot: 'automated',
  human: 'human',
  inconclusive: 'uncertain',
} as const satisfies Record<Verdict, string>

/** A decision as lists and visitor activity show it. */
export function decisionOf(row: DecisionRow) {
  return {
    event_id: row.event_id,
    verdict: row.verdict,
    risk_score: row.risk_score,
    phase: row.phase,
    is_provisional: row.is_provisional,
    manipulation: row.manipulation,
    evaluation_duration_ms: row.evaluation_duration_ms,
    evaluated_at: iso(row.evaluated_at),
  }
}

/** A decision as the session detail shows it. */
export function detailDecisionOf(row: DecisionRow): DetailDecision {
  return {
    event_id: row.event_id,
    automation_status: automationStatus[row.verdict],
    risk_score: row.risk_score,
    evaluation_phase: row.phase,
    decision_status: row.is_provisional ? 'preliminary' : 'final',
    evaluated_at: iso(row.evaluated_at),
  }
}

export function visitorLinkOf({ id, confidence, identified_at }: LinkedVisitor) {
  return { object: 'visitor_fingerprint' as const, id, confidence, identified_at: iso(identified_at) }
}
