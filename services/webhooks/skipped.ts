import { type DecidedEvent, decidedEvent } from '../../infra/event-store/decide.ts'
import { derivedId } from '../../infra/ids.ts'
import type { DeliveryRow } from '../../projections/webhooks/tables.ts'

export interface Skip {
  delivery: Pick<DeliveryRow, 'id' | 'event_id' | 'endpoint_id' | 'organization_id' | 'environment'>
  /** In words for the endpoint's owner. */
  reason: string
  /** A delivery is skipped once for each: after a redelivery it may be skipped again. */
  occasion: string
  /** Epoch milliseconds. */
  now: number
}

/** The event that a delivery is given up without a request. */
export function skipped({ delivery, reason, occasion, now }: Skip): DecidedEvent {
  const { id: delivery_id, event_id, endpoint_id, organization_id, environment } = delivery
  const data = {
    event_id,
    delivery_id,
    organization_id,
    environment,
    endpoint_id,
    reason,
    skipped_at: now,
  }
  const eventId = derivedId('evt', 'webhook-skipped', delivery_id, occasion)
  return decidedEvent(
    { type: 'WebhookDeliverySkipped', data },
    { organizationId: organization_id, environment, eventId, now },
  )
}
