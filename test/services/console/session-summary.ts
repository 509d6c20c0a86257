import type { SessionSummary } from '../../../services/readback/schemas/sessions.ts'

const time = '2026-11-27T08:00:00.000Z'

/** Creates a session summary of `GET /v1/sessions`, by default without visitor, mark, facts and user. */
export function sessionSummary({
  latest_decision,
  ...changes
}: Partial<Omit<SessionSummary, 'latest_decision'>> & {
  latest_decision?: Partial<SessionSummary['latest_decision']>
} = {}): SessionSummary {
  return {
    object: 'session',
    id: 'sid_1',
    created_at: time,
    client_user_id: null,
    latest_decision: {
      event_id: 'evt_1',
      verdict: 'bot',
      risk_score: 98,
      phase: 'behavioral',
      is_provisional: false,
      manipulation: null,
      evaluation_duration_ms: 1,
      evaluated_at: time,
      ...latest_decision,
    },
    visitor_fingerprint: null,
    mark: null,
    facts: null,
    ...changes,
  }
}
