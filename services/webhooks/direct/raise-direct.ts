import { type Decide, type DecidedEvent, decidedEvent } from '../../../infra/event-store/decide.ts'
import type { DecisionId } from '../../../infra/ids.ts'
import type { DirectEvent } from '../../../infra/wire/webhooks/direct-call.ts'
import { webhookEventId } from '../../../infra/wire/webhooks/events.ts'
import { raisedEventIds } from '../../../projections/webhooks/queries.ts'
import { eventTopics, type WebhookEventRaised } from '../../../schemas/events.ts'

/** See `DirectCalls.raise`. */
export async function raiseDirect(decide: Decide, event: DirectEvent): Promise<DecisionId> {
  const eventId = webhookEventId(event.type, event.subject.id)
  await decide({
    locks: [`webhook-event:${eventId}`],
    topic: eventTopics.WebhookEventRaised,
    key: eventId,
    projection: 'webhooks',
    load: async (tx) => (await raisedEventIds(tx, [eventId])).has(eventId),
    decide: (isRaised) => (isRaised ? [] : [raised(eventId, event)]),
  })
  return eventId
}

function raised(eventId: DecisionId, event: DirectEvent): DecidedEvent {
  const { organizationId, environment, createdAt: now } = event
  const data: WebhookEventRaised = {
    event_id: eventId,
    organization_id: organizationId,
    environment,
    type: event.type,
    subject_type: event.subject.type,
    subject_id: event.subject.id,
    data: JSON.stringify(event.data),
    created_at: now,
    endpoint_ids: [event.endpointId],
    route: 'direct',
  }
  return decidedEvent({ type: 'WebhookEventRaised', data }, { organizationId, environment, eventId, now })
}
