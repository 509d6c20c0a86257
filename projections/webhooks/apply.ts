import type { RecordedEvent } from '../../infra/event-store/codec.ts'
import type { Tx } from '../../infra/postgres/pool.ts'
import { applyDeliveryEvents } from './apply-deliveries.ts'
import { applyEndpointEvents } from './apply-endpoints.ts'
import { isDeliveryEvent } from './evolve-delivery.ts'
import { isEndpointEvent } from './evolve-endpoint.ts'

/**
 * Applies one partition's events, which hold all of an organization's endpoints and all that becomes of an event. The
 * two kinds touch no common rows: an event says itself which endpoints it goes to.
 */
export async function apply(tx: Tx, events: RecordedEvent[]): Promise<void> {
  const endpointEvents = events.filter(isEndpointEvent)
  const deliveryEvents = events.filter(isDeliveryEvent)
  if (endpointEvents.length > 0) await applyEndpointEvents(tx, endpointEvents)
  if (deliveryEvents.length > 0) await applyDeliveryEvents(tx, deliveryEvents)
}
