import { derivedHexId } from '../../../infra/ids.ts'
import type { Db } from '../../../infra/postgres/pool.ts'
import {
  type DirectDelivery,
  type DirectRefusal,
  directType,
} from '../../../infra/wire/webhooks/direct-call.ts'
import { organizationStatuses } from '../../../projections/organizations/queries.ts'
import { findDelivery, findEndpoints, findEvents } from '../../../projections/webhooks/queries.ts'
import type { DeliveryRow, EndpointRow, WebhookEventRow } from '../../../projections/webhooks/tables.ts'

/** What a direct call is about. */
export interface DirectJob {
  event: WebhookEventRow
  endpoint: EndpointRow
  delivery: DeliveryRow
}

/** The delivery; undefined unless the event was raised for this endpoint, to be delivered directly. */
export async function findDirectDelivery(
  db: Db,
  { eventId, endpointId }: DirectDelivery,
): Promise<DeliveryRow | undefined> {
  const delivery = await findDelivery(db, derivedHexId('wdlv', eventId, endpointId))
  // Any other is the queue's.
  return delivery?.event_type === directType ? delivery : undefined
}

/** All that the call needs, or why nothing may be sent. */
export async function loadDirect(db: Db, which: DirectDelivery): Promise<DirectJob | DirectRefusal> {
  const { eventId, endpointId } = which
  const [delivery, events, endpoints] = await Promise.all([
    findDirectDelivery(db, which),
    findEvents(db, [eventId]),
    findEndpoints(db, [endpointId]),
  ])
  const [event, endpoint] = [events.get(eventId), endpoints.get(endpointId)]
  if (!delivery || !event) return 'not_raised'
  if (delivery.status === 'failed' || delivery.status === 'skipped') return 'ended'
  if (!endpoint || !isOfTenant(endpoint, event)) return 'endpoint_unknown'
  const refusal = endpointRefusal(endpoint, event) ?? (await organizationRefusal(db, event))
  return refusal ?? { event, endpoint, delivery }
}

function isOfTenant(endpoint: EndpointRow, event: WebhookEventRow): boolean {
  return endpoint.organization_id === event.organization_id && endpoint.environment === event.environment
}

function endpointRefusal(endpoint: EndpointRow, event: WebhookEventRow): DirectRefusal | undefined {
  if (endpoint.status !== 'active') return 'endpoint_disabled'
  return endpoint.event_types.some((type) => type === event.type) ? undefined : 'endpoint_not_subscribed'
}

async function organizationRefusal(db: Db, event: WebhookEventRow): Promise<DirectRefusal | undefined> {
  const { organization_id: id } = event
  return (await organizationStatuses(db, [id])).get(id) === 'active' ? undefined : 'organization_inactive'
}
