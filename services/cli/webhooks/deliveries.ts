import type { DeliveryRow } from '../../../projections/webhooks/rows.ts'
import { deliveryJson as shownByTheApi } from '../../webhooks/events/shapes.ts'
import { table, time } from '../operator/tables.ts'

const noLeases: ReadonlySet<string> = new Set()

/** As the API shows it, and whose it is. */
export function deliveryJson(delivery: DeliveryRow) {
  const { organization_id, environment } = delivery
  return { ...shownByTheApi(delivery, noLeases), organization_id, environment }
}

/** Deliveries with the last answer or error of each. */
export function deliveryTable(deliveries: DeliveryRow[]): string {
  const head = [
    'event',
    'type',
    'organization',
    'endpoint',
    'status',
    'attempts',
    'last answer',
    'error',
    'last change',
  ]
  return table(
    head,
    deliveries.map((delivery) => [
      ...[delivery.event_id, delivery.event_type, delivery.organization_id, delivery.endpoint_id],
      ...[delivery.status, delivery.attempts, delivery.response_status, delivery.error],
      time(delivery.updated_at),
    ]),
  )
}
