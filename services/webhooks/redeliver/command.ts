import type { Decide } from '../../../infra/event-store/decide.ts'
import { type Clock, type Random, timeOrderedId } from '../../../infra/ids.ts'
import type { Tx } from '../../../infra/postgres/pool.ts'
import { findOrganization } from '../../../projections/organizations/queries.ts'
import { deliveriesOf, findEndpoints, findEvents } from '../../../projections/webhooks/queries.ts'
import { eventTopics } from '../../../schemas/events.ts'
import { redeliver as decideRedelivery, type RedeliveryState } from './redeliver.ts'

export interface RedeliverDeps {
  decide: Decide
  clock: Clock
  random: Random
}

export interface RedeliverRequest {
  eventId: string
  /** undefined = every endpoint that did not get the event. */
  endpointId?: string | undefined
}

/** For the operator: ids of the deliveries that are due again. ApiError: 404 and 409 as the decision tells them. */
export async function redeliver(
  { decide, clock, random }: RedeliverDeps,
  { eventId, endpointId }: RedeliverRequest,
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
  return events.flatMap(({ type, data }) => (type === 'WebhookRedeliveryRequested' ? [data.delivery_id] : []))
}

async function load(tx: Tx, eventId: string): Promise<RedeliveryState> {
  const event = (await findEvents(tx, [eventId])).get(eventId)
  const deliveries = await deliveriesOf(tx, [eventId])
  return {
    event,
    deliveries,
    organization: event && (await findOrganization(tx, event.organization_id)),
    endpoints: await findEndpoints(
      tx,
      deliveries.map((delivery) => delivery.endpoint_id),
    ),
  }
}
