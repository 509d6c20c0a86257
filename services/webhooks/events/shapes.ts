import type { Db } from '../../../infra/postgres/pool.ts'
import { deliveriesOf } from '../../../projections/webhooks/queries.ts'
import type { DeliveryRow, WebhookEventRow } from '../../../projections/webhooks/tables.ts'
import { inFlightDeliveries } from '../dispatch/queue.ts'

/** A delivery as the API shows it; `inFlight` has the ids of those that are being made. */
export function deliveryJson(delivery: DeliveryRow, inFlight: ReadonlySet<string>) {
  const { id, event_id, endpoint_id, event_type, attempts, response_status, response_body, error } = delivery
  const delivering = delivery.status === 'pending' && inFlight.has(id)
  return {
    object: 'webhook_delivery',
    id,
    event_id,
    endpoint_id,
    event_type,
    status: delivering ? 'delivering' : delivery.status,
    attempts,
    next_attempt_at: delivery.next_attempt_at === null ? null : iso(delivery.next_attempt_at),
    response_status,
    response_body,
    error,
    created_at: iso(delivery.created_at),
    updated_at: iso(delivery.updated_at),
  }
}

interface EventParts {
  deliveries: DeliveryRow[]
  inFlight: ReadonlySet<string>
}

export function eventJson(event: WebhookEventRow, { deliveries, inFlight }: EventParts) {
  const data: unknown = JSON.parse(event.data)
  return {
    object: 'event',
    id: event.id,
    type: event.type,
    subject: { type: event.subject_type, id: event.subject_id },
    data,
    webhook_deliveries: deliveries.map((delivery) => deliveryJson(delivery, inFlight)),
    created_at: iso(event.created_at),
  }
}

const iso = (at: number) => new Date(at).toISOString()

interface Deliveries {
  // Oldest first.
  of(eventId: string): DeliveryRow[]
  inFlight: ReadonlySet<string>
}

export async function loadDeliveries(db: Db, eventIds: string[]): Promise<Deliveries> {
  const rows = await deliveriesOf(db, eventIds)
  const byEvent = Map.groupBy(rows, ({ event_id }) => event_id)
  const pending = rows.filter(({ status }) => status === 'pending').map(({ id }) => id)
  const inFlight = pending.length > 0 ? await inFlightDeliveries(db, pending) : new Set<string>()
  return { of: (eventId) => byEvent.get(eventId) ?? [], inFlight }
}
