import { uriOf } from '../../../infra/wire/webhooks/events.ts'
import {
  iso,
  linkOf,
  requestOf,
  scoreBreakdownOf,
  shownAttribution,
  signalOf,
} from '../../../projections/sessions/decision-shape.ts'
import type { SessionScored, VisitorLink } from '../../../schemas/events.ts'
import type { FingerprintCalculated, RequestSummary, ResultPersisted } from '../deliveries/schemas.ts'

/** `SessionFingerprintCalculatedPayload` of the published interface. */
export function fingerprintCalculated(scored: SessionScored, visitor: VisitorLink): FingerprintCalculated {
  return {
    object: 'session_fingerprint',
    session: { id: scored.session_id },
    visitor_fingerprint: linkOf(visitor),
    request: requestSummary(scored),
    calculated_at: iso(scored.evaluated_at),
  }
}

/** `SessionResultPersistedPayload` of the published interface. Its event is the decision, as REST shows it. */
export function resultPersisted(scored: SessionScored): ResultPersisted {
  const { event_id, phase, is_provisional, verdict, risk_score, manipulation, visitor } = scored
  return {
    object: 'session_result',
    session: { id: scored.session_id },
    event: {
      id: event_id,
      scoring_event_id: event_id,
      phase,
      is_provisional,
      persisted_at: iso(scored.evaluated_at),
    },
    decision: { verdict, risk_score, score: risk_score / 100, manipulation },
    visitor_fingerprint: visitor && { id: visitor.id },
    request: requestSummary(scored),
    score_breakdown: scoreBreakdownOf(scored),
    signals: scored.signals_fired.map((signal) => ({ ...signalOf(signal), role: signal.role })),
    attribution: shownAttribution(scored),
  }
}

/** `WebhookRequestSummary`: unlike elsewhere, `is_touch_capable` cannot be null there. */
function requestSummary({ request, device, created_at, evaluated_at }: SessionScored): RequestSummary {
  const { is_touch_capable, url, ...rest } = requestOf(request)
  return {
    url: uriOf(url),
    ...rest,
    ...(is_touch_capable === null ? {} : { is_touch_capable }),
    platform: device.operating_system.name,
    first_seen: iso(created_at),
    risk_time: iso(evaluated_at),
  }
}
