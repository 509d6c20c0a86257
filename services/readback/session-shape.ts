import { decisionOf, iso, visitorLinkOf } from '../../projections/sessions/decision-shape.ts'
import type { SessionRow } from '../../projections/sessions/queries.ts'
import type { SessionSummary } from './schemas/session-summary.ts'

/** A list row. */
export function sessionSummary(row: SessionRow): SessionSummary {
  return {
    object: 'session',
    id: row.id,
    created_at: iso(row.created_at),
    client_user_id: row.client_user_id,
    latest_decision: decisionOf(row.latest_decision),
    visitor_fingerprint: row.visitor && visitorLinkOf(row.visitor),
  }
}
