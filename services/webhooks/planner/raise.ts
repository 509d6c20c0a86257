import { type SubscribableType, webhookEventId } from '../../../infra/wire/webhooks/events.ts'
import { webhookRetentionMs } from '../../../projections/webhooks/tables.ts'
import type { SessionScored, WebhookEventRaised } from '../../../schemas/events.ts'
import { fingerprintCalculated, resultPersisted } from './payloads.ts'

/** An event before it is known which endpoints are told. */
export type Raised = Omit<WebhookEventRaised, 'endpoint_ids' | 'type'> & { type: SubscribableType }

/**
 * What webhook endpoints may be told because of a decision that is read at `now` (epoch milliseconds): that the
 * session's visitor is known, and that its result is final. Later decisions say the same again, under the same ids; the
 * first of an id counts.
 */
export function raise(scored: SessionScored, now: number): Raised[] {
  const { visitor, is_provisional } = scored
  const occasion = { scored, createdAt: createdAt(scored, now) }
  const raised: Raised[] = []
  if (visitor)
    raised.push(about(occasion, 'session.fingerprint.calculated', fingerprintCalculated(scored, visitor)))
  if (!is_provisional) raised.push(about(occasion, 'session.result.persisted', resultPersisted(scored)))
  return raised
}

const clockDifferenceMs = 60 * 60 * 1000

/**
 * When it was decided, by the clock of the server that scored. The read model forgets what is 30 days older than the
 * newest event of its partition, so one clock that is far ahead would make it forget everybody's events.
 */
function createdAt({ evaluated_at }: SessionScored, now: number): number {
  return Math.min(evaluated_at, now + clockDifferenceMs)
}

/**
 * Whether the read model still knows which events of the session were raised. The opening counts, not the decision:
 * what was raised at an earlier decision is forgotten earlier.
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
