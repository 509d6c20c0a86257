import { webhookEventId } from '../../../infra/webhooks/event-id.ts'
import type { SubscribableType } from '../../../infra/webhooks/event-types.ts'
import { keptMs } from '../../../projections/webhooks/queries.ts'
import type { SessionScored, WebhookEventRaised } from '../../../schemas/events.ts'
import { fingerprintCalculated, resultPersisted } from './payloads.ts'

/** An event before it is known which endpoints are told. */
export type Raised = Omit<WebhookEventRaised, 'endpoint_ids' | 'type'> & { type: SubscribableType }

/**
 * What webhook endpoints may be told because of a decision: that the session's visitor is known, and that its result
 * is final. Later decisions say the same again, under the same ids; the first of an id counts.
 */
export function raise(scored: SessionScored): Raised[] {
  const { visitor, is_provisional } = scored
  const raised: Raised[] = []
  if (visitor)
    raised.push(about(scored, 'session.fingerprint.calculated', fingerprintCalculated(scored, visitor)))
  if (!is_provisional) raised.push(about(scored, 'session.result.persisted', resultPersisted(scored)))
  return raised
}

const clockDifferenceMs = 60 * 60 * 1000

/**
 * Whether the read model still knows which events of the session were raised. The opening counts, not the decision:
 * what was raised at an earlier decision is forgotten earlier.
 */
export function isRecent({ created_at }: SessionScored, now: number): boolean {
  return created_at >= now - keptMs + clockDifferenceMs
}

function about(scored: SessionScored, type: SubscribableType, payload: object): Raised {
  const { session_id, organization_id, environment, evaluated_at } = scored
  return {
    event_id: webhookEventId(type, session_id),
    organization_id,
    environment,
    type,
    subject_type: 'session',
    subject_id: session_id,
    data: JSON.stringify(payload),
    created_at: evaluated_at,
    route: 'queued',
  }
}
