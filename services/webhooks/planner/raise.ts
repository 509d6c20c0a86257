import { type SubscribableType, webhookEventId } from '../../../infra/wire/webhooks/events.ts'
import type { SessionEventType } from '../../../projections/sessions/tables.ts'
import { webhookRetentionMs } from '../../../projections/webhooks/tables.ts'
import type { SessionScored, WebhookEventRaised } from '../../../schemas/events.ts'
import { sessionEventData, type ToldDecision } from '../events/session-event.ts'

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
    data: sessionEventData(type, toldOf(scored)),
    created_at: createdAt(scored, now),
    route: 'queued',
  }
}

function toldOf(scored: SessionScored): ToldDecision {
  const { created_at: session_created_at, evaluated_at: at, device } = scored
  return { ...scored, session_created_at, at, platform: device.operating_system.name }
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
