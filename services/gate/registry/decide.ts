import { isDeepStrictEqual } from 'node:util'
import { organizationFor } from '../../../infra/access/organization.ts'
import { checkAll, checkPresent } from '../../../infra/errors/check-all.ts'
import { ApiError } from '../../../infra/errors/errors.ts'
import {
  type DecidedEvent,
  decidedEvent,
  type NewEvent,
} from '../../../infra/event-store/decide.ts'
import { derivedId } from '../../../infra/ids.ts'
import { agentTokenEnvName, systemServiceId } from '../../../infra/wire/gate.ts'
import { isSameIdentity } from '../../../projections/gate/evolve.ts'
import type { ServiceScope } from '../../../projections/gate/queries.ts'
import type { GateServiceRow } from '../../../projections/gate/tables.ts'
import type { OrganizationRow } from '../../../projections/organizations/tables.ts'
import type { EndpointRow } from '../../../projections/webhooks/tables.ts'
import type { GateServiceDefinition } from '../../../schemas/events.ts'
import { refuseLarge } from './definition.ts'
import { type FieldRules, invalidMember } from './fields.ts'
import { refuseForbidden } from './forbidden.ts'
import { verifiedPrefix } from './ownership.ts'

const registration = { parameterSet: 'gate_service_create' } as const
const maxServices = 5

export interface RegistrationState {
  organization: OrganizationRow | undefined
  isRepeated: boolean
  /** Ids in use that differ only in - and _. */
  similarIds: readonly string[]
  /** The organization's services in both environments, disabled ones included. */
  count: number
  /** Names of other organizations' verified services; empty if the name does not change. */
  verifiedNames: readonly string[]
  endpoint: EndpointRow | undefined
}

/**
 * Returns no event for a repeated command. Throws 404 if the organization does not exist, 403 if it is not active, 409 if
 * the id or a variable is taken or there are too many services, and 422 for a forbidden name or an endpoint without the
 * subscription.
 */
export function decideRegistration(
  state: RegistrationState,
  command: ServicePath & NewEvent & { definition: GateServiceDefinition },
): DecidedEvent[] {
  organizationFor(state.organization, 'key')
  if (state.isRepeated) return []
  refuseTakenId(state.similarIds, command.serviceId)
  refuseTooManyServices(state.count)
  const { definition, now } = command
  const { verifiedNames } = state
  checkAll({
    endpoint: () => requireSubscribedEndpoint(state.endpoint, registration),
    name: () => refuseForbidden({ name: definition.name }, { ...registration, verifiedNames }),
  })
  const data = { ...serviceIds(command), definition, registered_at: now }
  return [decidedEvent({ type: 'GateServiceRegistered', data }, command)]
}

function refuseTakenId(similarIds: readonly string[], serviceId: string): void {
  const isTaken = similarIds.includes(serviceId) || serviceId === systemServiceId
  if (!isTaken && similarIds.length === 0) return
  const variable = agentTokenEnvName(serviceId)
  const why = isTaken ? '.' : `: ${variable} is the variable of another service.`
  throw new ApiError('request.conflict', {
    message: `The id ${serviceId} is taken${why}`,
    details: {
      fields: [{ name: 'id', issue: 'taken', received: serviceId }],
      parameter_set: registration.parameterSet,
    },
  })
}

function refuseTooManyServices(count: number): void {
  if (count < maxServices) return
  throw new ApiError('request.conflict', {
    message: `An organization can have ${maxServices} services, including disabled ones. Update an active service instead.`,
    details: { next_action: 'contact_support', parameter_set: registration.parameterSet },
  })
}

const change = { parameterSet: 'gate_service_update' } as const

/**
 * Returns no event if nothing changes. Throws 404 if the service does not exist, 403 if the organization is not active,
 * 409 if the service is disabled, and 422 for forbidden values, an endpoint without the subscription, or a definition
 * that is too large. The endpoint is checked only if the change names it.
 */
export function decideServiceChange(
  state: ServiceState & Pick<RegistrationState, 'endpoint' | 'verifiedNames'>,
  command: ServicePath & NewEvent & { changes: Partial<GateServiceDefinition> },
): DecidedEvent[] {
  organizationFor(state.organization, 'key')
  const service = requireActive(requireOwned(state.service, command))
  const { changes } = command
  const definition = { ...service.definition, ...changes }
  checkPresent<Record<'endpoint' | 'forbidden' | 'size', unknown>>({
    endpoint:
      changes.webhook_endpoint_id !== undefined &&
      (() => requireSubscribedEndpoint(state.endpoint, change)),
    forbidden: () =>
      refuseForbidden(changes, {
        ...change,
        registered: service.definition,
        verifiedNames: state.verifiedNames,
        ...verifiedAfter(service, definition),
      }),
    size: () => refuseLarge(definition, change),
  })
  if (isDeepStrictEqual(definition, service.definition)) return []
  const data = { ...serviceIds(command), definition, changed_at: command.now }
  return [decidedEvent({ type: 'GateServiceChanged', data }, command)]
}

// Returns the domain and prefix that stay verified under the new definition.
function verifiedAfter(service: GateServiceRow, definition: GateServiceDefinition) {
  const verifiedDomain =
    definition.website === service.definition.website ? service.verified_domain : null
  const verified = service.verified && isSameIdentity(service.definition, definition)
  const prefix = verifiedPrefix({
    id: service.id,
    verified,
    verified_domain: verifiedDomain,
    definition,
  })
  return { verifiedDomain, prefix }
}

/** ApiError 409 if the service is disabled. */
export function requireActive(service: GateServiceRow): GateServiceRow {
  if (service.status === 'active') return service
  throw new ApiError('request.conflict', { message: 'A disabled service cannot be changed.' })
}

/** No event if it is already disabled. ApiError: 404 no such service, 403 organization not active. */
export function decideServiceDisabling(
  state: ServiceState,
  command: ServicePath & { now: number },
): DecidedEvent[] {
  organizationFor(state.organization, 'key')
  const service = requireOwned(state.service, command)
  if (service.status === 'disabled') return []
  const data = { ...serviceIds(command), disabled_at: command.now }
  const eventId = derivedId('evt', command.serviceId, 'disabled')
  return [decidedEvent({ type: 'GateServiceDisabled', data }, { ...command, eventId })]
}

export interface ServicePath extends ServiceScope {
  serviceId: string
}

export const serviceIds = ({ serviceId, organizationId, environment }: ServicePath) => ({
  service_id: serviceId,
  organization_id: organizationId,
  environment,
})

export interface ServiceState {
  organization: OrganizationRow | undefined
  service: GateServiceRow | undefined
}

/**
 * Returns the same 404 for an id that is malformed, unknown, or another organization's, so that nobody learns which.
 */
export function noSuchService(): ApiError {
  return new ApiError('request.not_found', {
    message: 'No Gate service with this id exists in this organization and environment.',
  })
}

export function requireOwned(
  service: GateServiceRow | undefined,
  { organizationId, environment }: ServiceScope,
): GateServiceRow {
  if (service?.organization_id === organizationId && service.environment === environment)
    return service
  throw noSuchService()
}

function requireSubscribedEndpoint(
  endpoint: EndpointRow | undefined,
  { parameterSet }: Pick<FieldRules, 'parameterSet'>,
): void {
  if (endpoint?.status === 'active' && endpoint.event_types.includes('gate.session.approved'))
    return
  const expected =
    'an active webhook endpoint of this organization and environment that is subscribed to gate.session.approved'
  throw invalidMember(
    { field: 'webhook_endpoint_id', parameterSet },
    { issue: 'invalid', expected },
  )
}
