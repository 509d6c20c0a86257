import { type SubscribableType, uriOf, webhookEventId } from '../../../infra/wire/webhooks/events.ts'
import {
  iso,
  linkOf,
  requestOf,
  scoreBreakdownOf,
  shownAttribution,
  signalOf,
} from '../../../projections/sessions/decision-shape.ts'
import { webhookRetentionMs } from '../../../projections/webhooks/tables.ts'
import type { SessionScored, VisitorLink, WebhookEventRaised } from '../../../schemas/events.ts'
import type { FingerprintCalculated, RequestSummary, ResultPersisted } from '../events/schemas.ts'

export type Raised = Omit<WebhookEventRaised, 'endpoint_ids' | 'type'> & { type: SubscribableType }

/**
 * The events of a decision that is read at `now` (epoch milliseconds): the session's visitor is known, its result is
 * final. Later decisions give the same events, with the same ids; the first of an id counts.
 */
export function raise(scored: SessionScored, now: number): Raised[] {
  const { visitor, is_provisional } = scored
  const occasion = { scored, createdAt: createdAt(scored, now) }
  const raised: Raised[] = []
  if (visitor)
    raised.push(about(occasion, 'session.fingerprint.calculated', fingerprintPayloadOf(scored, visitor)))
  if (!is_provisional) raised.push(about(occasion, 'session.result.persisted', resultPayloadOf(scored)))
  return raised
}

const clockDifferenceMs = 60 * 60 * 1000

/**
 * The time of the decision, by the clock of the server that scored. The read model forgets what is 30 days older than
 * the newest event of its partition, so one clock that is far ahead would make it forget everybody's events.
 */
function createdAt({ evaluated_at }: SessionScored, now: number): number {
  return Math.min(evaluated_at, now + clockDifferenceMs)
}

/**
 * Whether the read model still knows which events of the session were raised. The session's opening counts, not the
 * decision: what was raised at an earlier decision is forgotten earlier.
 */
export function isRecent({ created_at }: SessionScored, now: number): boolean {
  return created_at >= now - webhookRetentionMs + clockDifferenceMs
}

interface Occasion {
  scored: SessionScored
  createdAt: number
}

function about({ scored, createdAt: created_at }: Occasion, type: SubscribableType, payload: object): Raised {
  const { session_id, organization_id, environment } = scored
  return {
    event_id: webhookEventId(type, session_id),
    organization_id,
    environment,
    type,
    subject_type: 'session',
    subject_id: session_id,
    data: JSON.stringify(payload),
    created_at,
    route: 'queued',
  }
}

function fingerprintPayloadOf(scored: SessionScored, visitor: VisitorLink): FingerprintCalculated {
  return {
    object: 'session_fingerprint',
    session: { id: scored.session_id },
    visitor_fingerprint: linkOf(visitor),
    request: requestSummary(scored),
    calculated_at: iso(scored.evaluated_at),
  }
}

export function resultPayloadOf(scored: SessionScored): ResultPersisted {
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

/** Unlike elsewhere, `is_touch_capable` cannot be null here. */
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
