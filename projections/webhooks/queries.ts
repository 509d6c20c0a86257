/** All that is read of webhooks. */
export {
  deliveriesOf,
  failingSince,
  findDelivery,
  type ListUndelivered,
  listUndelivered,
  maxCounted,
  type QueueReadings,
  queueReadings,
} from './delivery-queries.ts'
export {
  countActiveEndpoints,
  findEndpoint,
  findEndpoints,
  listEndpoints,
  maxListedEndpoints,
  subscribedEndpoints,
  type WantedEndpoints,
  type WebhookScope,
} from './endpoint-queries.ts'
export { findEvent, findEvents, type ListEvents, listEvents, raisedEventIds } from './event-queries.ts'
export { keptMs } from './evolve-history.ts'
