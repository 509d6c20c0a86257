import type { Highlight, NativeRuntimeIntegrity, SessionScored, Verdict } from '../../schemas/events.ts'

const automationStatus = {
  bot: 'automated',
  human: 'human',
  inconclusive: 'uncertain',
} as const satisfies Record<Verdict, string>

/** Epoch milliseconds as the API shows them: ISO 8601, UTC, milliseconds. */
export function iso(time: number): string {
  return new Date(time).toISOString()
}

/** A decision as the session detail shows it, also among `previous_decisions`. */
export function shownDecision(data: SessionScored) {
  return {
    event_id: data.event_id,
    automation_status: automationStatus[data.verdict],
    risk_score: data.risk_score,
    evaluation_phase: data.phase,
    decision_status: data.is_provisional ? ('preliminary' as const) : ('final' as const),
    evaluated_at: iso(data.evaluated_at),
  }
}

/**
 * What a session's detail shows as of its latest decision, most actionable first. Made once, when the decision is
 * applied: a reader hands on its JSON as it is. `client_user_id`, `lifecycle` and `previous_decisions` are not the
 * decision's, so the reader fills them in. A change here needs a new version of the projection.
 */
export function shownDetail(data: SessionScored) {
  const { url, referrer, user_agent } = data.request
  return {
    object: 'session' as const,
    id: data.session_id,
    created_at: iso(data.created_at),
    client_user_id: null,
    decision: shownDecision(data),
    highlights: data.highlights.map(shownHighlight),
    attribution: data.attribution,
    web_bot_auth: data.web_bot_auth,
    network: { ...data.network, evaluated_at: isoOrNull(data.network.evaluated_at) },
    runtime_integrity: data.runtime_integrity,
    visitor_fingerprint: data.visitor && shownVisitor(data.visitor),
    connection_fingerprint: data.connection_fingerprint,
    previous_decisions: [],
    request: { url, referrer, user_agent },
    browser: data.browser,
    device: data.device,
    analysis_coverage: data.analysis_coverage,
    signals_fired: data.signals_fired,
    client_telemetry: data.client_telemetry,
    native_runtime_integrity: data.native_runtime_integrity && seenOnly(data.native_runtime_integrity),
    native_app: data.native_app,
    native_carrier: data.native_carrier,
    native_motion_print: data.native_motion_print,
    device_identity: data.device_identity,
    install_id: data.install_id,
    behavior: null,
  }
}

function isoOrNull(time: number | null): string | null {
  return time === null ? null : iso(time)
}

function shownHighlight({ evidence, ...highlight }: Highlight) {
  return evidence ? { ...highlight, evidence } : highlight
}

function shownVisitor(visitor: NonNullable<SessionScored['visitor']>) {
  const { id, confidence, identified_at, method, basis } = visitor
  return {
    object: 'visitor_fingerprint' as const,
    id,
    confidence,
    identified_at: iso(identified_at),
    resolution: { method, basis },
    lifecycle: null,
  }
}

/** Members that the SDK could not see are left out: Avro has them as null. */
function seenOnly(integrity: NativeRuntimeIntegrity): unknown {
  return JSON.parse(JSON.stringify(integrity, (_, value: unknown) => value ?? undefined))
}
