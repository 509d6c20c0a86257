import { iso } from '../../../infra/iso.ts'
import { uriOf } from '../../../infra/wire/webhooks/events.ts'
import {
  agentJson,
  linkJson,
  requestJson,
  scoreBreakdownJson,
  signalJson,
  visibleAttribution,
} from '../../../projections/sessions/decision-json.ts'
import type { SessionEventRow } from '../../../projections/sessions/session-events.ts'
import type { LinkedVisitor, SessionEventType } from '../../../projections/sessions/tables.ts'
import type { WebhookScope } from '../../../projections/webhooks/queries.ts'
import type { WebhookEventRow } from '../../../projections/webhooks/tables.ts'
import type { FingerprintCalculated, RequestSummary, ResultPersisted } from './schemas.ts'

/** Decision that a webhook event is about, read from the log or the read model. */
export type NotifiedDecision = Omit<SessionEventRow, 'id' | 'type'>

/** Returns the event's `data` as JSON. Throws if the event is about the visitor and the decision has none. */
export function sessionEventData(type: SessionEventType, decision: NotifiedDecision): string {
  if (type === 'session.result.persisted') return JSON.stringify(resultPayloadOf(decision))
  if (!decision.visitor) throw new Error(`the decision ${decision.event_id} has no visitor`)
  return JSON.stringify(fingerprintPayloadOf(decision, decision.visitor))
}

function fingerprintPayloadOf(
  decision: NotifiedDecision,
  visitor: LinkedVisitor,
): FingerprintCalculated {
  return {
    object: 'session_fingerprint',
    session: { id: decision.session_id },
    visitor_fingerprint: linkJson(visitor),
    request: requestSummary(decision),
    calculated_at: iso(decision.at),
  }
}

function resultPayloadOf(decision: NotifiedDecision): ResultPersisted {
  const { event_id, phase, is_provisional, verdict, risk_score, manipulation, visitor } = decision
  return {
    object: 'session_result',
    session: { id: decision.session_id },
    event: {
      id: event_id,
      scoring_event_id: event_id,
      phase,
      is_provisional,
      persisted_at: iso(decision.at),
    },
    decision: { verdict, risk_score, score: risk_score / 100, manipulation },
    visitor_fingerprint: visitor && { id: visitor.id },
    request: requestSummary(decision),
    score_breakdown: scoreBreakdownJson(decision),
    signals: decision.signals_fired.map((signal) => ({ ...signalJson(signal), role: signal.role })),
    attribution: {
      ...visibleAttribution(decision),
      agent: agentJson(decision.agent),
    },
  }
}

// Webhooks omit `is_touch_capable` if it is unknown, although it is null in REST responses.
function requestSummary({
  request,
  platform,
  session_created_at,
  at,
}: NotifiedDecision): RequestSummary {
  const { is_touch_capable, url, ...rest } = requestJson(request)
  return {
    url: uriOf(url),
    ...rest,
    ...(is_touch_capable === null ? {} : { is_touch_capable }),
    platform,
    first_seen: iso(session_created_at),
    risk_time: iso(at),
  }
}

/** Builds an event that was never raised, because no endpoint was subscribed to it or accepted it. */
export function unsentEvent(
  row: SessionEventRow,
  { organizationId: organization_id, environment }: WebhookScope,
): WebhookEventRow {
  const { id, type, session_id: subject_id, at: created_at } = row
  const data = sessionEventData(type, row)
  const about = { subject_type: 'session', subject_id, data, created_at }
  return { id, organization_id, environment, type, ...about }
}
