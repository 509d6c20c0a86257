import {
  attributionOf,
  decisionOf,
  requestOf,
  scoreBreakdownOf,
  signalOf,
  visitorLinkOf,
} from '../../projections/sessions/decision-shape.ts'
import type { FullDecisionRow } from '../../projections/sessions/tables.ts'

export type HandOffDecision = FullDecisionRow

/** What a sealed token says, as `payload` of test/fixtures/sealed-token/vector.v2.json. */
export function tokenPayload(row: HandOffDecision) {
  return {
    object: 'session_verification',
    session_id: row.session_id,
    decision: decisionOf(row),
    request: requestOf(row.request),
    visitor_fingerprint: row.visitor && visitorLinkOf(row.visitor),
    signals: riskSignals(row),
    score_breakdown: scoreBreakdownOf(row),
    attribution: attributionOf(row),
    embed: null,
  }
}

/** What speaks against the session; what speaks for it, and mere context, is for reading back. */
function riskSignals({ signals_fired }: HandOffDecision) {
  return signals_fired.filter(({ role }) => role === 'risk').map(signalOf)
}
