import type { DecisionRow, LinkedVisitor } from './rows.ts'
import { iso } from './shown.ts'

/** A decision as lists, visitor activity and sealed tokens show it. */
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

/** The visitor of a session as lists and sealed tokens show it. */
export function visitorLinkOf({ id, confidence, identified_at }: LinkedVisitor) {
  return { object: 'visitor_fingerprint' as const, id, confidence, identified_at: iso(identified_at) }
}
