import type { DeliveryRow, WebhookEventRow } from '../../../projections/webhooks/tables.ts'

/** A delivery as the API shows it; `leased` has the ids of those that are being made. */
export function deliveryJson(delivery: DeliveryRow, leased: ReadonlySet<string>) {
  const { id, event_id, endpoint_id, event_type, attempts, response_status, response_body, error } = delivery
  const delivering = delivery.status === 'pending' && leased.has(id)
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
  leased: ReadonlySet<string>
}

/** An event as the API shows it, with what became of its deliveries. */
export function eventJson(event: WebhookEventRow, { deliveries, leased }: EventParts) {
  const data: unknown = JSON.parse(event.data)
  return {
    object: 'event',
    id: event.id,
    type: event.type,
    subject: { type: event.subject_type, id: event.subject_id },
    data,
    webhook_deliveries: deliveries.map((delivery) => deliveryJson(delivery, leased)),
    created_at: iso(event.created_at),
  }
}

const iso = (at: number) => new Date(at).toISOString()
