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

export type NewWebhookEvent = Omit<WebhookEventRaised, 'endpoint_ids' | 'type'> & {
  type: SubscribableType
}

/**
 * Builds the webhook event of a decision. All decisions of a session build an event with the same id, and the read
 * model keeps the first. `now`: epoch milliseconds.
 */
export function buildDecisionEvent(
  scored: SessionScored,
  type: SessionEventType,
  now: number,
): NewWebhookEvent {
  const { session_id, organization_id, environment } = scored
  return {
    event_id: webhookEventId(type, session_id),
    organization_id,
    environment,
    type,
    subject_type: 'session',
    subject_id: session_id,
    data: sessionEventData(type, notifiedDecision(scored)),
    // Capped, because the read model deletes events 30 days older than the newest of their partition: a scoring process
    // whose clock is far ahead would delete all events.
    created_at: Math.min(scored.evaluated_at, now + maxClockSkewMs),
    route: 'queued',
  }
}

/** Builds the webhook event of a session whose visitor was corrected. */
export function buildReassignmentEvent(
  row: SessionEventRow,
  reassignment: SessionReassignment,
): NewWebhookEvent {
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

function notifiedDecision(scored: SessionScored): NotifiedDecision {
  const { created_at: session_created_at, evaluated_at: at, device } = scored
  return { ...scored, session_created_at, at, platform: device.operating_system.name }
}

const maxClockSkewMs = 60 * 60 * 1000

/**
 * Returns true if the read model still has all events raised for the session. Compares the session's start, because the
 * events of its first decision are deleted first.
 */
export function isWithinRetention({ created_at }: SessionScored, now: number): boolean {
  return created_at >= now - webhookRetentionMs + maxClockSkewMs
}
