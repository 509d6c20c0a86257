import type { DomainEvent } from '../../../infra/event-store/codec.ts'
import { type DecidedEvent, decidedEvent } from '../../../infra/event-store/decide.ts'
import { derivedId } from '../../../infra/ids.ts'
import { organizationFor } from '../../../projections/organizations/queries.ts'
import type { DisabledReason, EndpointRow, FlaggedReason } from '../../../projections/webhooks/tables.ts'
import type { WebhookEndpointDisabled } from '../../../schemas/events.ts'
import { type EndpointsState, endpointFor, refuseNeeded } from './endpoint-state.ts'

export interface DisableEndpoint {
  eventId: string
  /** Epoch milliseconds. */
  now: number
}

/**
 * Disables an endpoint for its owner; no event when it is disabled. 404 without it, 403 when the organization is not
 * active, 409 while services are told of approvals there.
 */
export function disableEndpoint(state: EndpointsState, command: DisableEndpoint): DecidedEvent[] {
  organizationFor(state.organization, 'key')
  const endpoint = endpointFor(state.endpoint)
  if (endpoint.status === 'disabled') return []
  refuseNeeded(state)
  return [disabled(endpoint, { ...command, reason: 'manual' })]
}

export type GiveUpState = Pick<EndpointsState, 'endpoint' | 'services'>

export interface GiveUpEndpoint {
  reason: FlaggedReason
  /** When the request began that shows the reason (epoch milliseconds). */
  seenAt: number
  eventId: string
  /** Epoch milliseconds. */
  now: number
}

/**
 * Disables an endpoint that cannot be delivered to, or flags it while services are told of approvals there: to disable
 * it would end all signups for them. No event when there is none, it is disabled or flagged for as much, or its owner
 * has enabled or moved it since: what the request met is not what the next would meet.
 */
export function giveUpEndpoint({ endpoint, services }: GiveUpState, command: GiveUpEndpoint): DecidedEvent[] {
  if (endpoint?.status !== 'active' || endpoint.target_since > command.seenAt) return []
  if (services.length === 0) return [disabled(endpoint, command)]
  const isFlagged = endpoint.flagged_reason === 'gone' || endpoint.flagged_reason === command.reason
  return isFlagged ? [] : [flagged(endpoint, command)]
}

/** Takes the flag off an endpoint that was delivered to; no event when it has none. */
export function recoverEndpoint(
  endpoint: EndpointRow | undefined,
  { eventId, now }: DisableEndpoint,
): DecidedEvent[] {
  if (!endpoint || endpoint.flagged_reason === null) return []
  const { organization_id, id: endpoint_id } = endpoint
  const data = { organization_id, endpoint_id, recovered_at: now }
  return [about(endpoint, { type: 'WebhookEndpointRecovered', data }, { eventId, now })]
}

function disabled(
  endpoint: EndpointRow,
  { reason, eventId, now }: { reason: DisabledReason; eventId: string; now: number },
): DecidedEvent {
  const { organization_id, id: endpoint_id } = endpoint
  const data: WebhookEndpointDisabled = { organization_id, endpoint_id, reason, disabled_at: now }
  return about(endpoint, { type: 'WebhookEndpointDisabled', data }, { eventId, now })
}

function flagged(endpoint: EndpointRow, { reason, eventId, now }: GiveUpEndpoint): DecidedEvent {
  const { organization_id, id: endpoint_id } = endpoint
  const data = { organization_id, endpoint_id, reason, flagged_at: now }
  // Of its own: what flags an endpoint may disable it later, when no service is told there any more.
  const ids = { eventId: derivedId('evt', eventId, 'flagged'), now }
  return about(endpoint, { type: 'WebhookEndpointFlagged', data }, ids)
}

function about(
  { organization_id: organizationId, environment }: EndpointRow,
  event: DomainEvent,
  ids: DisableEndpoint,
): DecidedEvent {
  return decidedEvent(event, { organizationId, environment, ...ids })
}
