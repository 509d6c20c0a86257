import { webhookEventId } from '../../../infra/ids.ts'
import { type SubscribableType, uriOf } from '../../../infra/wire/webhooks/events.ts'
import { reassignedAt, type SessionReassignment } from '../../../projections/sessions/apply-reassignments.ts'
import {
  iso,
  linkOf,
  requestOf,
  scoreBreakdownOf,
  signalOf,
  visibleAttribution,
} from '../../../projections/sessions/decision-shape.ts'
import type { SessionEventRow } from '../../../projections/sessions/session-events.ts'
import type { LinkedVisitor, SessionEventType } from '../../../projections/sessions/tables.ts'
import { type WebhookEventRow, webhookRetentionMs } from '../../../projections/webhooks/tables.ts'
import type { SessionScored, WebhookEventRaised } from '../../../schemas/events.ts'
import type { FingerprintCalculated, RequestSummary, ResultPersisted } from '../events/schemas.ts'

export type Raised = Omit<WebhookEventRaised, 'endpoint_ids' | 'type'> & { type: SubscribableType }

/**
 * The event of a decision that is read at `now` (epoch milliseconds): the session's visitor is known, or its result is
 * final. Later decisions give the same event, with the same id; the first of an id counts.
 */
export function raise(scored: SessionScored, type: SessionEventType, now: number): Raised {
  const { session_id, organization_id, environment } = scored
  return {
    event_id: webhookEventId(type, session_id),
    organization_id,
    environment,
    type,
    subject_type: 'session',
    subject_id: session_id,
    data: sessionEventData(type, notifiedOf(scored)),
    created_at: createdAt(scored, now),
    route: 'queued',
  }
}

/** The event of a session that was given another visitor. */
export function raiseAgain(row: SessionEventRow, move: SessionReassignment): Raised {
  const { id: event_id, type } = row
  const { organization_id, environment, session_id: subject_id } = move
  const about = { event_id, organization_id, environment, type, subject_id, created_at: reassignedAt(move) }
  return { ...about, subject_type: 'session', data: sessionEventData(type, row), route: 'queued' }
}

function notifiedOf(scored: SessionScored): NotifiedDecision {
  const { created_at: session_created_at, evaluated_at: at, device } = scored
  return { ...scored, session_created_at, at, platform: device.operating_system.name }
}

const clockDifferenceMs = 60 * 60 * 1000

// The time of the decision, by the clock of the server that scored. The read model forgets what is 30 days older than
// the newest event of its partition, so one clock that is far ahead would make it forget everybody's events.
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

// What an event says of the decision that gave rise to it, as the log or the read model has it.
type NotifiedDecision = Omit<SessionEventRow, 'id' | 'type'>

function sessionEventData(type: SessionEventType, decision: NotifiedDecision): string {
  return JSON.stringify(payloadOf(type, decision))
}

function payloadOf(
  type: SessionEventType,
  decision: NotifiedDecision,
): FingerprintCalculated | ResultPersisted {
  if (type === 'session.result.persisted') return resultPayloadOf(decision)
  if (!decision.visitor) throw new Error(`the decision ${decision.event_id} has no visitor`)
  return fingerprintPayloadOf(decision, decision.visitor)
}

function fingerprintPayloadOf(decision: NotifiedDecision, visitor: LinkedVisitor): FingerprintCalculated {
  return {
    object: 'session_fingerprint',
    session: { id: decision.session_id },
    visitor_fingerprint: linkOf(visitor),
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
    score_breakdown: scoreBreakdownOf(decision),
    signals: decision.signals_fired.map((signal) => ({ ...signalOf(signal), role: signal.role })),
    attribution: visibleAttribution(decision),
  }
}

// Unlike elsewhere, `is_touch_capable` cannot be null here.
function requestSummary({ request, platform, session_created_at, at }: NotifiedDecision): RequestSummary {
  const { is_touch_capable, url, ...rest } = requestOf(request)
  return {
    url: uriOf(url),
    ...rest,
    ...(is_touch_capable === null ? {} : { is_touch_capable }),
    platform,
    first_seen: iso(session_created_at),
    risk_time: iso(at),
  }
}

/** The event of a session that no endpoint was subscribed to: it is not on the webhooks topic. */
export function unsentEvent(
  row: SessionEventRow,
  scope: Pick<WebhookEventRow, 'organization_id' | 'environment'>,
): WebhookEventRow {
  const { id, type, session_id: subject_id, at: created_at } = row
  return {
    ...scope,
    id,
    type,
    subject_type: 'session',
    subject_id,
    data: sessionEventData(type, row),
    created_at,
  }
}
