import { type DecidedEvent, decidedEvent } from '../../../infra/event-store/decide.ts'
import { derivedId, type EndpointId } from '../../../infra/ids.ts'
import type { AddressRules } from '../../../infra/safe-http/addresses.ts'
import { organizationFor } from '../../../projections/organizations/queries.ts'
import type { Environment, WebhookEndpointCreated } from '../../../schemas/events.ts'
import { checkedEndpointName, checkedEventTypes, checkedUrl } from './checked-fields.ts'
import { type EndpointsState, refuseManyActive } from './endpoint-state.ts'

export interface EndpointRequest {
  name: string
  url: string
  eventTypes: readonly string[]
}

/** A checked request, normalised. */
export type EndpointSpec = Pick<WebhookEndpointCreated, 'name' | 'url' | 'event_types'>

export interface CreateEndpoint {
  organizationId: string
  environment: Environment
  endpointId: EndpointId
  spec: EndpointSpec
  /** The signing secret as it is stored; the secret itself is not part of any command. */
  sealedSecret: Buffer
  /** Epoch milliseconds. */
  now: number
}

/** The request as it is decided about. 422 naming the field that does not fit. */
export function completeEndpointRequest(request: EndpointRequest, rules: AddressRules): EndpointSpec {
  const parameterSet = 'webhook_endpoint_create'
  return {
    name: checkedEndpointName(request.name, parameterSet),
    url: checkedUrl(request.url, { rules, parameterSet }),
    event_types: checkedEventTypes(request.eventTypes, parameterSet),
  }
}

/**
 * A new, active endpoint; 404 without the organization, 403 when it is not active, 409 when as many are active
 * as can be.
 * No event when the endpoint is there already: the command is repeated.
 */
export function createEndpoint(state: EndpointsState, command: CreateEndpoint): DecidedEvent[] {
  organizationFor(state.organization, 'key')
  const { organizationId, environment, endpointId, spec, sealedSecret, now } = command
  if (state.endpoint) return []
  refuseManyActive(state)
  const data: WebhookEndpointCreated = {
    organization_id: organizationId,
    endpoint_id: endpointId,
    environment,
    ...spec,
    signing_secret_sealed: sealedSecret,
    created_at: now,
  }
  const eventId = derivedId('evt', endpointId, 'created')
  return [
    decidedEvent({ type: 'WebhookEndpointCreated', data }, { organizationId, environment, eventId, now }),
  ]
}
