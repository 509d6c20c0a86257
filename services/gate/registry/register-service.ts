import { ApiError } from '../../../infra/errors/errors.ts'
import type { Decision } from '../../../infra/event-store/decide.ts'
import { decided } from '../../../infra/event-store/decided.ts'
import { agentTokenEnvName } from '../../../infra/wire/gate.ts'
import { organizationFor } from '../../../projections/organizations/queries.ts'
import type { OrganizationRow } from '../../../projections/organizations/tables.ts'
import type { EndpointRow } from '../../../projections/webhooks/tables.ts'
import type { GateServiceDefinition, GateServiceRegistered } from '../../../schemas/events.ts'
import { refuseDeafEndpoint, type ServicePath } from './service-state.ts'
import { systemServiceId } from './system-service.ts'

const parameterSet = 'gate_service_create'
/** How many services an organization has at most: in both environments, disabled ones too. */
const maxServices = 5

/** What the registration of a service is decided from. */
export interface RegistrationState {
  organization: OrganizationRow | undefined
  /** This very command has registered the service before. */
  isRepeated: boolean
  /** Ids that somebody has and that differ from this one in - and _ at most. */
  alike: readonly string[]
  /** The organization's services, in both environments, disabled ones too. */
  count: number
  /** The one that is to be told of approvals, as the key sees it. */
  endpoint: EndpointRow | undefined
}

export interface RegisterService extends ServicePath {
  definition: GateServiceDefinition
  eventId: string
  /** Epoch milliseconds. */
  now: number
}

/**
 * A new, active service; 404 without the organization, 403 when it is not active, 409 when the id or its variable is taken or the
 * organization has as many services as it can, 422 for an endpoint that would not be told. No event when the command
 * is repeated.
 */
export function registerService(state: RegistrationState, command: RegisterService): Decision[] {
  organizationFor(state.organization, 'key')
  if (state.isRepeated) return []
  refuseTaken(state, command)
  refuseMany(state)
  refuseDeafEndpoint(state.endpoint, { parameterSet })
  const { serviceId, organizationId, environment, definition, eventId, now } = command
  const data: GateServiceRegistered = {
    service_id: serviceId,
    organization_id: organizationId,
    environment,
    definition,
    registered_at: now,
  }
  return [decided({ type: 'GateServiceRegistered', data }, { organizationId, environment, eventId, now })]
}

function refuseTaken({ alike }: RegistrationState, { serviceId }: RegisterService): void {
  if (alike.includes(serviceId) || serviceId === systemServiceId) {
    throw taken(serviceId, `The id ${serviceId} is taken.`)
  }
  if (alike.length === 0) return
  const variable = agentTokenEnvName(serviceId)
  throw taken(serviceId, `The id ${serviceId} is taken: ${variable} is the variable of another service.`)
}

function taken(serviceId: string, message: string): ApiError {
  return new ApiError('request.conflict', {
    message,
    details: {
      fields: [{ name: 'id', issue: 'taken', received: serviceId }],
      parameter_set: parameterSet,
    },
  })
}

function refuseMany({ count }: RegistrationState): void {
  if (count < maxServices) return
  throw new ApiError('request.conflict', {
    message: `An organization can have ${maxServices} services in all, disabled ones included.`,
    details: { next_action: 'contact_support', parameter_set: parameterSet },
  })
}
