import type { RecordedEvent } from '../../infra/event-store/event.ts'
import { appliedRow, evolveState, type Projection } from '../../infra/event-store/projection.ts'
import type { Cte } from '../../infra/postgres/arrays.ts'
import type { Tx } from '../../infra/postgres/pool.ts'
import { insertRows, loadRows, saveRows } from '../../infra/postgres/table.ts'
import { eventTopics } from '../../schemas/events.ts'
import { eraseDeliveries, pruneAndBuildWrites } from './apply-deliveries.ts'
import { isDeliveryEvent } from './evolve-delivery.ts'
import { type EndpointEvent, evolveEndpoint, isEndpointEvent } from './evolve-endpoint.ts'
import { pruneWebhooks } from './prune.ts'
import {
  type EndpointRow,
  endpointRow,
  storedEndpoint,
  webhookAppliedEvents,
  webhookApplyIndexes,
  webhookAttempts,
  webhookDeliveries,
  webhookEndpoints,
  webhookEvents,
  webhookPartitionTimes,
  webhookReadIndexes,
} from './tables.ts'

const tables = [
  webhookEndpoints,
  webhookEvents,
  webhookDeliveries,
  webhookAttempts,
  webhookPartitionTimes,
  webhookAppliedEvents,
]

export const webhooksProjection: Projection = {
  name: 'webhooks',
  version: 3,
  topics: [eventTopics.WebhookEventRaised, eventTopics.VisitorErased],
  tables: tables.map(({ name }) => name),
  ddl: tables.map(({ ddl }) => ddl).join('') + webhookApplyIndexes,
  indexes: webhookReadIndexes,
  appliedIn: [webhookAppliedEvents.name],
  isExclusive: () => false,
  apply,
  createPrune: () => pruneWebhooks,
  erase: eraseDeliveries,
}

// All endpoints of an organization are in one partition, and so are a webhook event and its deliveries. The two kinds
// of writes share no rows, because an event lists its endpoints itself.
async function apply(tx: Tx, events: RecordedEvent[]): Promise<Cte[]> {
  const endpointEvents = events.filter(isEndpointEvent)
  const deliveryEvents = events.filter(isDeliveryEvent)
  return [
    ...(endpointEvents.length > 0 ? await endpointWrites(tx, endpointEvents) : []),
    ...(deliveryEvents.length > 0 ? await pruneAndBuildWrites(tx, deliveryEvents) : []),
  ]
}

async function endpointWrites(tx: Tx, events: EndpointEvent[]): Promise<Cte[]> {
  const ids = events.map(({ data }) => data.endpoint_id)
  const stored = await loadRows(tx, webhookEndpoints, { by: 'id', ids })
  const endpoints = new Map<string, EndpointRow>()
  for (const [id, row] of stored) endpoints.set(id, endpointRow(row))
  for (const event of events)
    evolveState(endpoints, event.data.endpoint_id, (state) => evolveEndpoint(state, event))
  return [
    ...saveRows(webhookEndpoints, [...endpoints.values()].map(storedEndpoint)),
    ...insertRows(webhookAppliedEvents, events.map(appliedRow)),
  ]
}
