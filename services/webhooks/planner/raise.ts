import { webhookEventId } from '../../../infra/ids.ts'
import type { SubscribableType } from '../../../infra/wire/webhooks/events.ts'
import {
  reassignedAt,
  type SessionReassignment,
} from '../../../projections/sessions/apply-reassignments.ts'
import type { SessionEventRow } from '../../../projections/sessions/session-events.ts'
import type { SessionEventType } from '../../../projections/sessions/tables.ts'
import { webhookRetentionMs } from '../../../projections/webhooks/tables.ts'
import type { SessionScored, WebhookEventRaised } from '../../../schemas/events.ts'
import { type NotifiedDecision, sessionEventData } from '../events/payloads.ts'

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
    // The read model forgets what is 30 days older than the newest event of its partition, so a clock of scoring that is
    // far ahead would make it forget everybody's events.
    created_at: Math.min(scored.evaluated_at, now + clockDifferenceMs),
    route: 'queued',
  }
}

/** The event of a session that was given another visitor. */
export function raiseAgain(row: SessionEventRow, reassignment: SessionReassignment): Raised {
  const { id: event_id, type } = row
  const { organization_id, environment, session_id: subject_id } = reassignment
  const about = {
    event_id,
    organization_id,
    environment,
    type,
    subject_id,
    created_at: reassignedAt(reassignment),
  }
  return { ...about, subject_type: 'session', data: sessionEventData(type, row), route: 'queued' }
}

function notifiedOf(scored: SessionScored): NotifiedDecision {
  const { created_at: session_created_at, evaluated_at: at, device } = scored
  return { ...scored, session_created_at, at, platform: device.operating_system.name }
}

const clockDifferenceMs = 60 * 60 * 1000

/**
 * Whether the read model still knows which events of the session were raised. The session's opening counts, not the
 * decision: what was raised at an earlier decision is forgotten earlier.
 */
export function isRecent({ created_at }: SessionScored, now: number): boolean {
  return created_at >= now - webhookRetentionMs + clockDifferenceMs
}
