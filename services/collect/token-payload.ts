import type { FullDecisionRow } from '../../projections/sessions/rows.ts'

export type HandOffDecision = FullDecisionRow

const iso = (ms: number) => new Date(ms).toISOString()

/** What a sealed token says, as `payload` of test/fixtures/sealed-token/vector.v2.json. */
export function tokenPayload(row: HandOffDecision) {
  return {
    object: 'session_verification',
    session_id: row.session_id,
    decision: {
      event_id: row.event_id,
      verdict: row.verdict,
      risk_score: row.risk_score,
      phase: row.phase,
      is_provisional: row.is_provisional,
      manipulation: row.manipulation,
      evaluation_duration_ms: row.evaluation_duration_ms,
      evaluated_at: iso(row.evaluated_at),
    },
    request: requestOf(row),
    visitor_fingerprint: row.visitor && {
      object: 'visitor_fingerprint',
      id: row.visitor.id,
      confidence: row.visitor.confidence,
      identified_at: iso(row.visitor.identified_at),
    },
    signals: riskSignals(row),
    score_breakdown: { categories: row.score_breakdown },
    attribution: { bot: row.verdict === 'bot' ? row.attribution : null },
    embed: null,
  }
}

/** What speaks against the session; what speaks for it, and mere context, is for reading back. */
function riskSignals({ signals_fired }: HandOffDecision) {
  return signals_fired
    .filter(({ role }) => role === 'risk')
    .map(({ signal, category, strength, signal_score }) => ({
      id: signal,
      category,
      confidence: strength,
      score: signal_score,
    }))
}

function requestOf({ request }: HandOffDecision) {
  const { user_agent, url, screen_size, is_touch_capable, ip_address } = request
  return { user_agent, url, screen_size, is_touch_capable, ip_address }
}
