import {
  type CommandDeps,
  type DecidedEvent,
  type DecideRequest,
  newId,
} from '../../../infra/event-store/decide.ts'
import type { DomainEvent } from '../../../infra/event-store/event.ts'
import type { DeliveryType } from '../../../infra/wire/webhooks/events.ts'
import { findOrganization } from '../../../projections/organizations/queries.ts'
import type { OrganizationRow } from '../../../projections/organizations/tables.ts'
import { listResendable } from '../../../projections/webhooks/list-deliveries.ts'
import { findDelivery, findEndpoints } from '../../../projections/webhooks/queries.ts'
import type { DeliveryRow, EndpointRow } from '../../../projections/webhooks/tables.ts'
import { eventTopics } from '../../../schemas/events.ts'
import {
  redeliveryEvent,
  refuseApproval,
  requireActiveEndpoint,
  requireActiveOrganization,
} from './redeliver.ts'

type Deps = Omit<CommandDeps, 'keyring'>

/** Restarts a delivery with the full retry schedule, unless it is pending. Throws the errors of `decideResend`. */
export async function retryDelivery(deps: Deps, delivery: DeliveryRow): Promise<void> {
  refuseApproval(delivery.event_type)
  await restart(deps, delivery, {
    key: delivery.event_id,
    load: async (tx) => [(await findDelivery(tx, delivery.id)) ?? delivery],
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
  const statuses: DeliveryRow['status'][] = ['failed', 'skipped']
  if (status === 'all') statuses.push('succeeded')
  const query = { ...range, endpoint_id, status: statuses, limit: maxResent + 1 }
  let nextSince: number | null = null
  const events = await restart(
    deps,
    { endpoint_id, organization_id },
    {
      key: endpoint_id,
      // The deliveries can be in any partition.
      reads: 'topic',
      async load(tx) {
        const page = firstPage(await listResendable(tx, query))
        nextSince = page.nextSince
        return page.deliveries
      },
    },
  )
  return { resent: events.length, nextSince }
}

/** Returns the first 1,000 rows: fewer or more, so that the next page can start at a time. */
export function firstPage(rows: DeliveryRow[]) {
  const next = rows[maxResent]?.created_at
  if (next === undefined) return { deliveries: rows, nextSince: null }
  const earlier = rows.filter(({ created_at }) => created_at < next)
  return earlier.length > 0
    ? { deliveries: earlier, nextSince: next }
    : { deliveries: rows, nextSince: next + 1 }
}

/** Takes a lock per endpoint, so that a repeat sees that the deliveries are pending. */
async function restart(
  { decide, clock, ...deps }: Deps,
  { endpoint_id, organization_id }: Pick<DeliveryRow, 'endpoint_id' | 'organization_id'>,
  { load, ...request }: Pick<DecideRequest<DeliveryRow[]>, 'key' | 'reads' | 'load'>,
): Promise<DomainEvent[]> {
  const now = clock()
  const requestId = newId('evt', { ...deps, now })
  return decide({
    ...request,
    locks: [`webhook-resend:${endpoint_id}`],
    topic: eventTopics.WebhookRedeliveryRequested,
    projection: 'webhooks',
    async load(tx) {
      const organization = await findOrganization(tx, organization_id)
      const endpoint = (await findEndpoints(tx, [endpoint_id])).get(endpoint_id)
      return { organization, endpoint, endpoint_id, deliveries: await load(tx) }
    },
    decide: (state) => decideResend(state, { requestId, now }),
  })
}

interface ResendState {
  organization: OrganizationRow | undefined
  endpoint: EndpointRow | undefined
  endpoint_id: string
  deliveries: DeliveryRow[]
}

/** Restarts the finished deliveries. Throws 409 if the endpoint or its organization is not active. */
export function decideResend(
  { organization, endpoint, endpoint_id, deliveries }: ResendState,
  command: { requestId: string; now: number },
): DecidedEvent[] {
  requireActiveOrganization(organization)
  requireActiveEndpoint(endpoint, endpoint_id)
  return deliveries
    .filter(({ status }) => status !== 'pending')
    .map((delivery) => redeliveryEvent(delivery, command))
}
