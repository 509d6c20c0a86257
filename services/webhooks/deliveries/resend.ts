import { ApiError } from '../../../infra/errors/errors.ts'
import {
  type CommandDeps,
  type DecidedEvent,
  type DecideRequest,
  eventAbout,
  newId,
} from '../../../infra/event-store/decide.ts'
import type { DomainEvent } from '../../../infra/event-store/event.ts'
import { derivedId } from '../../../infra/ids.ts'
import { directEventType } from '../../../infra/wire/webhooks/direct-call.ts'
import type { DeliveryType } from '../../../infra/wire/webhooks/events.ts'
import { findOrganization } from '../../../projections/organizations/queries.ts'
import type { OrganizationRow } from '../../../projections/organizations/tables.ts'
import { listResendable } from '../../../projections/webhooks/list-deliveries.ts'
import { findDeliveriesByEvent, findEndpoints } from '../../../projections/webhooks/queries.ts'
import {
  type DeliveryRow,
  type EndpointRow,
  webhookRetentionMs,
} from '../../../projections/webhooks/tables.ts'
import { eventTopics } from '../../../schemas/events.ts'

type Deps = Omit<CommandDeps, 'keyring'>

/** Restarts the deliveries of an event to these endpoints, except pending ones. Throws the errors of `decideResend`. */
export async function retryDeliveries(
  deps: Deps,
  { event_id, organization_id }: Pick<DeliveryRow, 'event_id' | 'organization_id'>,
  endpointIds: string[],
): Promise<void> {
  await restart(deps, organization_id, endpointIds, {
    key: event_id,
    async load(tx) {
      const deliveries = await findDeliveriesByEvent(tx, [event_id])
      return deliveries.filter(({ endpoint_id }) => endpointIds.includes(endpoint_id))
    },
  })
}

export interface ResendRange {
  /** Epoch milliseconds; times of the events. */
  since: number
  until?: number | undefined
  status: 'failed' | 'all'
  type?: DeliveryType | undefined
}

const maxResent = 1000

/**
 * Restarts the endpoint's oldest 1,000 finished deliveries in the range: the failed and skipped ones, or all. Returns
 * their number, and the time from which to continue, or null if none is left. Throws the errors of `decideResend`.
 */
export async function resendDeliveries(
  deps: Deps,
  { id: endpoint_id, organization_id }: Pick<EndpointRow, 'id' | 'organization_id'>,
  { status, ...range }: ResendRange,
): Promise<{ resent: number; nextSince: number | null }> {
  const failed = ['failed', 'skipped'] as const
  const statuses = status === 'all' ? ([...failed, 'succeeded'] as const) : failed
  const since = Math.max(range.since, deps.clock() - webhookRetentionMs)
  const query = { ...range, since, endpoint_id, status: statuses, limit: maxResent + 1 }
  let nextSince: number | null = null
  const events = await restart(deps, organization_id, [endpoint_id], {
    key: endpoint_id,
    // The deliveries can be in any partition.
    reads: 'topic',
    async load(tx) {
      const found = await listResendable(tx, query)
      const next = found[maxResent]?.created_at
      if (next === undefined) return found
      // The next call starts at a time, so the deliveries of one time belong together, even if there are more.
      const earlier = found.filter(({ created_at }) => created_at < next)
      nextSince = earlier.length > 0 ? next : next + 1
      return earlier.length > 0 ? earlier : found
    },
  })
  return { resent: events.length, nextSince }
}

/** Takes a lock per endpoint, so that a repeat sees that the deliveries are pending. */
async function restart(
  { decide, clock, ...deps }: Deps,
  organizationId: string,
  endpointIds: string[],
  { load, ...request }: Pick<DecideRequest<DeliveryRow[]>, 'key' | 'reads' | 'load'>,
): Promise<DomainEvent[]> {
  const now = clock()
  const requestId = newId('evt', { ...deps, now })
  return decide({
    ...request,
    locks: endpointIds.map((id) => `webhook-resend:${id}`),
    topic: eventTopics.WebhookRedeliveryRequested,
    projection: 'webhooks',
    load: async (tx) => ({
      organization: await findOrganization(tx, organizationId),
      endpoints: [...(await findEndpoints(tx, endpointIds)).values()],
      deliveries: await load(tx),
    }),
    decide: (state) => decideResend(state, { requestId, now }),
  })
}

export interface ResendState {
  organization: OrganizationRow | undefined
  endpoints: EndpointRow[]
  deliveries: DeliveryRow[]
}

/**
 * Restarts finished deliveries with the full retry schedule. Throws 409 if the organization or an endpoint is not active,
 * or a delivery is that of an approval.
 */
export function decideResend(
  { organization, endpoints, deliveries }: ResendState,
  { requestId, now }: { requestId: string; now: number },
): DecidedEvent[] {
  if (deliveries.some(({ event_type }) => event_type === directEventType))
    throw conflict(
      'An approval cannot be redelivered: it is sent only while its session waits for the response.',
    )
  if (organization?.status !== 'active') throw conflict('The organization is not active.')
  const disabled = endpoints.find(({ status }) => status !== 'active')
  if (disabled) throw conflict(`The endpoint ${disabled.id} is not active; enable it first.`)
  const finished = deliveries.filter(({ status }) => status !== 'pending')
  return finished.map((delivery) => {
    const { id: delivery_id, event_id, endpoint_id, organization_id, environment } = delivery
    const ids = { event_id, delivery_id, organization_id, environment, endpoint_id }
    // The request is part of the id, so that a later one can restart the delivery again.
    const eventId = derivedId('evt', requestId, delivery_id)
    const data = { ...ids, requested_at: now }
    return eventAbout(delivery, { type: 'WebhookRedeliveryRequested', data }, { eventId, now })
  })
}

/**
 * Returns the delivery to the endpoint, or without one, those that failed or were skipped. Throws 404 if there is no
 * delivery to the endpoint, and 409 if there is nothing to redeliver.
 */
export function selectForRedelivery(deliveries: DeliveryRow[], endpointId?: string): DeliveryRow[] {
  const selected = deliveries.filter(({ endpoint_id, status }) =>
    endpointId ? endpoint_id === endpointId : status !== 'succeeded',
  )
  if (endpointId && selected.length === 0) {
    const message = 'endpoint: the event was not for this endpoint.'
    throw new ApiError('request.not_found', { message })
  }
  if (selected.length === 0)
    throw conflict('All endpoints have received the event; name one to send it there again.')
  const finished = selected.filter(({ status }) => status !== 'pending')
  if (finished.length === 0) throw conflict('The event is still being delivered.')
  return finished
}

const conflict = (message: string) => new ApiError('request.conflict', { message })
