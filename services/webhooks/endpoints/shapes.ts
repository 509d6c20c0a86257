import type { DeliveryRow, EndpointRow } from '../../../projections/webhooks/tables.ts'
import { deliveryJson } from '../events/shapes.ts'

/** An endpoint as the API shows it; `signingSecret` in the answer that makes it. */
export function endpointJson(endpoint: EndpointRow, { signingSecret }: { signingSecret?: string } = {}) {
  const { id, name, url, status, disabled_reason, flagged_reason, event_types } = endpoint
  return {
    object: 'webhook_endpoint',
    id,
    name,
    url,
    status,
    disabled_reason,
    flagged_reason,
    event_types,
    ...(signingSecret !== undefined && { signing_secret: signingSecret }),
    created_at: new Date(endpoint.created_at).toISOString(),
    updated_at: new Date(endpoint.updated_at).toISOString(),
  }
}

interface TestRows {
  eventId: string
  /** Oldest first. */
  deliveries: DeliveryRow[]
  /** Ids of those that are being made. */
  leased: ReadonlySet<string>
}

/** What became of a test so far. */
export function testJson({ eventId, deliveries, leased }: TestRows) {
  const latest = deliveries.at(-1)
  return {
    object: 'webhook_test',
    event_id: eventId,
    delivery_ids: deliveries.map(({ id }) => id),
    latest_delivery: latest ? deliveryJson(latest, leased) : null,
  }
}
