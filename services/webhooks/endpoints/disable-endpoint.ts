import type { Decision } from '../../../infra/decide.ts'
import { decided } from '../../../infra/decided.ts'
import { organizationFor } from '../../../projections/organizations/organization-for.ts'
import type { DisabledReason, EndpointRow } from '../../../projections/webhooks/rows.ts'
import type { WebhookEndpointDisabled } from '../../../schemas/events.ts'
import { type EndpointsState, endpointFor } from './endpoint-state.ts'

export interface DisableEndpoint {
  eventId: string
  /** Epoch milliseconds. */
  now: number
}

/** Disables an endpoint for its owner; no event when it is disabled. 404 without it, 403 when the organization is not active. */
export function disableEndpoint(state: EndpointsState, command: DisableEndpoint): Decision[] {
  organizationFor(state.organization, 'key')
  const endpoint = endpointFor(state.endpoint)
  return endpoint.status === 'disabled' ? [] : [disabled(endpoint, { ...command, reason: 'manual' })]
}

export interface GiveUpEndpoint {
  reason: Exclude<DisabledReason, 'manual'>
  /** When the request began that shows the reason (epoch milliseconds). */
  seenAt: number
  eventId: string
  /** Epoch milliseconds. */
  now: number
}

/**
 * Disables an endpoint that cannot be delivered to. No event when there is none, it is disabled, or its owner has
 * enabled or moved it since: what the request met is not what the next would meet.
 */
export function giveUpEndpoint(endpoint: EndpointRow | undefined, command: GiveUpEndpoint): Decision[] {
  if (endpoint?.status !== 'active' || endpoint.target_since > command.seenAt) return []
  return [disabled(endpoint, command)]
}

function disabled(
  { id, organization_id, environment }: EndpointRow,
  { reason, eventId, now }: { reason: DisabledReason; eventId: string; now: number },
): Decision {
  const data: WebhookEndpointDisabled = { organization_id, endpoint_id: id, reason, disabled_at: now }
  return decided(
    { type: 'WebhookEndpointDisabled', data },
    { organizationId: organization_id, environment, eventId, now },
  )
}
