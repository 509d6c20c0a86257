import { ApiError } from '../../../infra/errors/errors.ts'
import { type Decide, type DecidedEvent, eventAbout } from '../../../infra/event-store/decide.ts'
import { type Clock, derivedId, type Random, timeOrderedId } from '../../../infra/ids.ts'
import type { Tx } from '../../../infra/postgres/pool.ts'
import { directEventType } from '../../../infra/wire/webhooks/direct-call.ts'
import type { DeliveryType } from '../../../infra/wire/webhooks/events.ts'
import { findOrganization } from '../../../projections/organizations/queries.ts'
import type { OrganizationRow } from '../../../projections/organizations/tables.ts'
import {
  findDeliveriesByEvent,
  findEndpoints,
  findEvents,
} from '../../../projections/webhooks/queries.ts'
import type {
  DeliveryRow,
  EndpointRow,
  WebhookEventRow,
} from '../../../projections/webhooks/tables.ts'
import { eventTopics } from '../../../schemas/events.ts'

/**
 * Requests redelivery to the endpoint; without `endpointId`, to every endpoint whose delivery failed or was skipped.
 * Returns the ids of the deliveries. Throws the errors of `decideRedelivery`.
 */
export async function redeliver(
  { decide, clock, random }: { decide: Decide; clock: Clock; random: Random },
  { eventId, endpointId }: { eventId: string; endpointId?: string | undefined },
): Promise<string[]> {
  const now = clock()
  const requestId = timeOrderedId('evt', now, random)
  const events = await decide({
    locks: [`webhook-event:${eventId}`],
    topic: eventTopics.WebhookRedeliveryRequested,
    key: eventId,
    projection: 'webhooks',
    load: (tx) => load(tx, eventId),
    decide: (state) => decideRedelivery(state, { endpointId, requestId, now }),
  })
  return events.flatMap(({ data }) => ('delivery_id' in data ? [data.delivery_id] : []))
}

async function load(tx: Tx, eventId: string): Promise<RedeliveryState> {
  const event = (await findEvents(tx, [eventId])).get(eventId)
  const deliveries = await findDeliveriesByEvent(tx, [eventId])
  const endpointIds = deliveries.map(({ endpoint_id }) => endpoint_id)
  return {
    event,
    deliveries,
    organization: event && (await findOrganization(tx, event.organization_id)),
    endpoints: await findEndpoints(tx, endpointIds),
  }
}

export interface RedeliveryState {
  event: WebhookEventRow | undefined
  organization: OrganizationRow | undefined
  deliveries: DeliveryRow[]
  endpoints: ReadonlyMap<string, EndpointRow>
}

interface Redeliver {
  endpointId?: string | undefined
  /** Part of the event ids, so that a later request can redeliver again. */
  requestId: string
  now: number
}

/**
 * Restarts finished deliveries with the full retry schedule. A successful delivery is restarted only if its endpoint is
 * named. Throws 404 if there is no such event, or no delivery to the endpoint, and 409 if the event is still being
 * delivered, there is nothing to redeliver, the endpoint or organization is not active, or the event is an approval.
 */
export function decideRedelivery(state: RedeliveryState, command: Redeliver): DecidedEvent[] {
  const { event, organization, deliveries } = state
  if (!event)
    throw notFound(
      'event: no such event; events are kept for 30 days. "webhooks deliveries --status failed" lists those that failed.',
    )
  refuseApproval(event.type)
  requireActiveOrganization(organization)
  const { endpointId } = command
  const selected = endpointId
    ? [requireFinished(deliveries, endpointId)]
    : requireFailed(deliveries)
  for (const { endpoint_id: id } of selected) requireActiveEndpoint(state.endpoints.get(id), id)
  return selected.map((delivery) => redeliveryEvent(delivery, command))
}

/** Throws 409 if the event type is that of an approval. */
export function refuseApproval(type: DeliveryType): void {
  if (type !== directEventType) return
  throw conflict(
    'An approval cannot be redelivered: it is sent only while its session waits for the response.',
  )
}

export function requireActiveOrganization(organization: OrganizationRow | undefined): void {
  if (organization?.status !== 'active') throw conflict('The organization is not active.')
}

function requireFinished(deliveries: DeliveryRow[], endpointId: string): DeliveryRow {
  const delivery = deliveries.find(({ endpoint_id }) => endpoint_id === endpointId)
  if (!delivery) throw notFound('endpoint: the event was not for this endpoint.')
  if (delivery.status === 'pending') throw stillPending()
  return delivery
}

function requireFailed(deliveries: DeliveryRow[]): DeliveryRow[] {
  const failed = deliveries.filter(({ status }) => status === 'failed' || status === 'skipped')
  if (failed.length > 0) return failed
  if (deliveries.some(({ status }) => status === 'pending')) throw stillPending()
  throw conflict('All endpoints have received the event; name one to send it there again.')
}

export function requireActiveEndpoint(endpoint: EndpointRow | undefined, id: string): void {
  if (endpoint?.status === 'active') return
  throw conflict(`The endpoint ${id} is not active; enable it first.`)
}

export function redeliveryEvent(
  delivery: DeliveryRow,
  { requestId, now }: Omit<Redeliver, 'endpointId'>,
): DecidedEvent {
  const { id, event_id, endpoint_id, organization_id, environment } = delivery
  const ids = { event_id, delivery_id: id, endpoint_id, organization_id, environment }
  const data = { ...ids, requested_at: now }
  const eventId = derivedId('evt', requestId, id)
  return eventAbout(delivery, { type: 'WebhookRedeliveryRequested', data }, { eventId, now })
}

const notFound = (message: string) => new ApiError('request.not_found', { message })
const conflict = (message: string) => new ApiError('request.conflict', { message })
const stillPending = () => conflict('The event is still being delivered.')
