import { decisionOf, iso } from '../../projections/sessions/decision-shape.ts'
import type { VisitorActivityRow, VisitorDetailRow, VisitorRow } from '../../projections/sessions/queries.ts'
import type { VisitorDetail, VisitorSummary } from './schemas/fingerprint.ts'

/** A list row. */
export function visitorSummary(row: VisitorRow): VisitorSummary {
  return {
    object: 'visitor_fingerprint',
    id: row.id,
    lifecycle: {
      first_seen_at: iso(row.first_seen_at),
      last_seen_at: iso(row.last_seen_at),
      seen_count: row.seen_count,
      expires_at: '9999-12-31T00:00:00.000Z',
    },
    latest_request: row.latest_request,
    storage: row.storage,
    anchors: row.anchors,
  }
}

export function visitorDetail(row: VisitorDetailRow): VisitorDetail {
  return {
    ...visitorSummary(row),
    components: { vector: row.vector },
    activity: { sessions: row.activity.map(activityOf) },
  }
}

function activityOf({ session_id, decision, request, score_breakdown }: VisitorActivityRow) {
  const { url, user_agent, ip_address, screen_size, is_touch_capable } = request
  return {
    session_id,
    decision: decisionOf(decision),
    request: { url, user_agent, ip_address, screen_size, is_touch_capable },
    score_breakdown: { categories: score_breakdown },
  }
}
