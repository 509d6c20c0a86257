import type { Projection } from '../../infra/event-store/projection.ts'
import { eventTopics } from '../../schemas/events.ts'
import { apply } from './apply.ts'
import { ddl, indexes, tables } from './tables.ts'

/** Webhook endpoints, the events they are told of, and what became of each delivery. It sends nothing. */
export const webhooksProjection: Projection = {
  name: 'webhooks',
  version: 2,
  topics: [eventTopics.WebhookEventRaised],
  tables,
  ddl,
  indexes,
  apply,
}
