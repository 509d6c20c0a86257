import { ApiError } from '../../../infra/errors/errors.ts'
import type { DecidedEvent } from '../../../infra/event-store/decide.ts'
import { derivedId } from '../../../infra/ids.ts'
import type { OrganizationRow } from '../../../projections/organizations/tables.ts'
import type { DeliveryRow, EndpointRow, WebhookEventRow } from '../../../projections/webhooks/tables.ts'

export interface RedeliveryState {
  /** undefined = no such event, or one that is not kept any more. */
  event: WebhookEventRow | undefined
  organization: OrganizationRow | undefined
  /** All of the event. */
  deliveries: DeliveryRow[]
  /** By id: those that the deliveries go to. */
  endpoints: ReadonlyMap<string, EndpointRow>
}

export interface Redeliver {
  /** undefined = every endpoint that did not get the event. */
  endpointId?: string | undefined
  /** Of this one request: its events get their ids from it, so that the same delivery can be asked for again. */
  requestId: string
  /** Epoch milliseconds. */
  now: number
}

/**
 * Lets deliveries that have ended start anew, with the whole retry schedule; one that succeeded only where its endpoint
 * is named. 404: no such event, or it has no delivery for the endpoint. 409: still being delivered, nothing to deliver
 * again, endpoint or organization not active, or an approval, whose answer nobody waits for any more.
 */
export function redeliver(state: RedeliveryState, command: Redeliver): DecidedEvent[] {
  const { event, organization, deliveries } = state
  if (!event)
    throw notFound(
      'event: no such event; events are kept for 30 days. "dead-letters" lists those that failed.',
    )
  if (event.type === 'gate.session.approved')
    throw conflict('An approval is delivered while its session waits for the answer; it cannot be repeated.')
  if (organization?.status !== 'active') throw conflict('The organization is not active.')
  const { endpointId } = command
  const chosen = endpointId ? [namedDelivery(deliveries, endpointId)] : undelivered(deliveries)
  for (const { endpoint_id: id } of chosen) requireActive(state.endpoints.get(id), id)
  return chosen.map((delivery) => requested(delivery, command))
}

function namedDelivery(deliveries: DeliveryRow[], endpointId: string): DeliveryRow {
  const delivery = deliveries.find(({ endpoint_id }) => endpoint_id === endpointId)
  if (!delivery) throw notFound('endpoint: the event was not for this endpoint.')
  if (delivery.status === 'pending') throw pending()
  return delivery
}

function undelivered(deliveries: DeliveryRow[]): DeliveryRow[] {
  const ended = deliveries.filter(({ status }) => status === 'failed' || status === 'skipped')
  if (ended.length > 0) return ended
  if (deliveries.some(({ status }) => status === 'pending')) throw pending()
  throw conflict('Every endpoint that the event was for has it; name one to send it there again.')
}

function requireActive(endpoint: EndpointRow | undefined, id: string): void {
  if (endpoint?.status === 'active') return
  throw conflict(`The endpoint ${id} is not active; enable it first.`)
}

function requested(delivery: DeliveryRow, { requestId, now }: Redeliver): DecidedEvent {
  const { id, event_id, endpoint_id, organization_id, environment } = delivery
  const about = { event_id, delivery_id: id, endpoint_id, organization_id, environment }
  return {
    event: { type: 'WebhookRedeliveryRequested', data: { ...about, requested_at: now } },
    meta: {
      eventId: derivedId('evt', requestId, id),
      time: now,
      organizationId: organization_id,
      environment,
    },
  }
}

const notFound = (message: string) => new ApiError('request.not_found', { message })
const conflict = (message: string) => new ApiError('request.conflict', { message })
const pending = () => conflict('The event is still being delivered.')
