import type { Db } from '../../../infra/postgres/pool.ts'
import { organizationStatuses } from '../../../projections/organizations/queries.ts'
import type { OrganizationStatus } from '../../../projections/organizations/tables.ts'
import { findEndpoints, findEvents } from '../../../projections/webhooks/queries.ts'
import type { EndpointRow, WebhookEventRow } from '../../../projections/webhooks/tables.ts'
import type { LeasedDelivery } from './take.ts'

/** A leased delivery with what it is about. */
export interface Job {
  delivery: LeasedDelivery
  event: WebhookEventRow
  endpoint: EndpointRow
  organizationStatus: OrganizationStatus
}

/**
 * Those are left out whose event, endpoint or organization the read models do not show. Nothing follows from that: they
 * may not show it yet, and only what they do show can be a reason to give a delivery up.
 */
export async function loadJobs(db: Db, deliveries: LeasedDelivery[]): Promise<Job[]> {
  if (deliveries.length === 0) return []
  const [events, endpoints, statuses] = await Promise.all([
    findEvents(db, distinct(deliveries.map(({ eventId }) => eventId))),
    findEndpoints(db, distinct(deliveries.map(({ endpointId }) => endpointId))),
    organizationStatuses(db, distinct(deliveries.map(({ organizationId }) => organizationId))),
  ])
  return deliveries.flatMap((delivery) => {
    const event = events.get(delivery.eventId)
    const endpoint = endpoints.get(delivery.endpointId)
    const organizationStatus = statuses.get(delivery.organizationId)
    return event && endpoint && organizationStatus ? [{ delivery, event, endpoint, organizationStatus }] : []
  })
}

/** Why nothing is sent, in words for the endpoint's owner; undefined where it is. */
export function skipReason({ endpoint, organizationStatus }: Job): string | undefined {
  if (endpoint.status !== 'active') return 'The endpoint is disabled.'
  return organizationStatus === 'active' ? undefined : 'The organization is not active.'
}

const distinct = (ids: string[]): string[] => [...new Set(ids)]
