import { ApiError } from '../../../infra/errors/errors.ts'
import { directType } from '../../../infra/wire/webhooks/direct-call.ts'
import type { OrganizationRow } from '../../../projections/organizations/tables.ts'
import type { EndpointRow } from '../../../projections/webhooks/tables.ts'
import type { Environment } from '../../../schemas/events.ts'

/** What a decision about endpoints is made from. */
export interface EndpointsState {
  organization: OrganizationRow | undefined
  /** The one that the command is about, as its key sees it; disabled, too. */
  endpoint: EndpointRow | undefined
  /** How many of the organization are active, in both environments. */
  active: number
  /** The ids of the active services that are told of approvals at the endpoint. */
  services: readonly string[]
}

/** Names one endpoint, as one key sees it. */
export interface EndpointName {
  environment: Environment
  endpointId: string
}

/** The same for an id that is malformed, unknown, of the other environment or organization: nobody learns which. */
export function noSuchEndpoint(): ApiError {
  return new ApiError('request.not_found', {
    message: 'No webhook endpoint with this id exists in this organization and environment.',
  })
}

/** The endpoint, active or disabled; 404 without it. */
export function endpointFor(endpoint: EndpointRow | undefined): EndpointRow {
  if (!endpoint) throw noSuchEndpoint()
  return endpoint
}

/** How many endpoints of an organization are active at most; both environments share it. Disabled ones have no limit. */
const maxActive = 20

/** 409 when the organization has as many active endpoints as it can. */
export function refuseManyActive({ active }: EndpointsState): void {
  if (active < maxActive) return
  throw new ApiError('request.conflict', {
    message: `An organization can have ${maxActive} active webhook endpoints; disable one first.`,
  })
}

/** 409 while services are told of approvals at the endpoint: nobody could sign up for them any more. */
export function refuseNeeded({ services }: Pick<EndpointsState, 'services'>): void {
  if (services.length === 0) return
  throw new ApiError('request.conflict', {
    message: `The webhook endpoint has to stay active and subscribed to ${directType} for ${services.join(', ')}; give each of these services another endpoint, or disable it, first.`,
  })
}
