import type { LinkedVisitor, SessionDetailRow, SessionRow } from '../../projections/sessions/rows.ts'
import type { DetailDeviceIdentity, Highlight, NativeRuntimeIntegrity } from '../../schemas/events.ts'
import { decisionOf, detailDecisionOf, iso, visitorLinkOf } from './decisions.ts'
import type { NativeRuntimeIntegrity as ShownIntegrity } from './schemas/native.ts'
import type { SessionDetail } from './schemas/session-detail.ts'
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

/** The whole session, most actionable first. */
export function sessionDetail(row: SessionDetailRow): SessionDetail {
  const { detail } = row
  const { url, referrer, user_agent } = detail.request
  return {
    object: 'session',
    id: row.id,
    created_at: iso(row.created_at),
    client_user_id: row.client_user_id,
    decision: detailDecisionOf(row.latest_decision),
    highlights: detail.highlights.map(shownHighlight),
    attribution: detail.attribution,
    web_bot_auth: detail.web_bot_auth,
    network: { ...detail.network, evaluated_at: isoOrNull(detail.network.evaluated_at) },
    runtime_integrity: detail.runtime_integrity,
    visitor_fingerprint: row.visitor && detailVisitor(row.visitor, row.lifecycle),
    connection_fingerprint: detail.connection_fingerprint,
    previous_decisions: row.previous_decisions.map(detailDecisionOf),
    request: { url, referrer, user_agent },
    browser: detail.browser,
    device: detail.device,
    analysis_coverage: detail.analysis_coverage,
    signals_fired: detail.signals_fired,
    client_telemetry: detail.client_telemetry,
    native_runtime_integrity: detail.native_runtime_integrity && seenOnly(detail.native_runtime_integrity),
    native_app: detail.native_app,
    native_carrier: detail.native_carrier,
    native_motion_print: detail.native_motion_print,
    device_identity: detail.device_identity && deviceIdentity(detail.device_identity),
    install_id: detail.install_id,
    behavior: null,
  }
}

function shownHighlight({ evidence, ...highlight }: Highlight) {
  return evidence ? { ...highlight, evidence } : highlight
}

function detailVisitor(visitor: LinkedVisitor, lifecycle: SessionDetailRow['lifecycle']) {
  const { method, basis } = visitor
  return {
    ...visitorLinkOf(visitor),
    resolution: { method, basis },
    lifecycle: {
      first_seen_at: isoOrNull(lifecycle?.first_seen_at ?? null),
      last_seen_at: isoOrNull(lifecycle?.last_seen_at ?? null),
      seen_count: lifecycle?.seen_count ?? null,
    },
  }
}

function isoOrNull(time: number | null): string | null {
  return time === null ? null : iso(time)
}

/** Members that the SDK could not see are left out: Avro has them as null. */
function seenOnly(integrity: NativeRuntimeIntegrity): ShownIntegrity {
  return JSON.parse(JSON.stringify(integrity, (_, value: unknown) => value ?? undefined))
}

function deviceIdentity(identity: DetailDeviceIdentity) {
  return { ...identity, object: 'device_identity' as const }
}
