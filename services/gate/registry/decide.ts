import { isDeepStrictEqual } from 'node:util'
import { requireUsableOrganization } from '../../../infra/access/organization.ts'
import { checkAll, checkPresent } from '../../../infra/errors/check-all.ts'
import { ApiError } from '../../../infra/errors/errors.ts'
import {
  type DecidedEvent,
  decidedEvent,
  type EventIdAndTime,
} from '../../../infra/event-store/decide.ts'
import { derivedId } from '../../../infra/ids.ts'
import { agentTokenEnvName, systemServiceId } from '../../../infra/wire/gate.ts'
import { isSameIdentity } from '../../../projections/gate/evolve.ts'
import type { ServiceScope } from '../../../projections/gate/queries.ts'
import type { GateServiceRow } from '../../../projections/gate/tables.ts'
import type { OrganizationRow } from '../../../projections/organizations/tables.ts'
import type { EndpointRow } from '../../../projections/webhooks/tables.ts'
import type { GateServiceDefinition } from '../../../schemas/events.ts'
import { refuseTooLarge } from './definition.ts'
import { type FieldRules, fieldError } from './fields.ts'
import { refuseForbiddenValues } from './forbidden.ts'
import { verifiedEnvPrefix } from './ownership.ts'

const createContext = { parameterSet: 'gate_service_create' } as const
const maxServices = 5

export interface RegistrationState {
  organization: OrganizationRow | undefined
  isRepeated: boolean
  /** Ids in use that equal the new one except for runs of - and _. */
  similarIds: readonly string[]
  /** Number of the organization's services in both environments, including disabled ones. */
  count: number
  /** Names of other organizations' verified services; empty if the name does not change. */
  verifiedNames: readonly string[]
  endpoint: EndpointRow | undefined
}

/**
 * Returns no event for a repeated command. Throws 404 if the organization does not exist, 403 if it is not active, 409
 * if the id or a variable is taken or there are too many services, and 422 for a forbidden name or an endpoint without
 * the subscription.
 */
export function decideRegistration(
  state: RegistrationState,
  command: ServicePath & EventIdAndTime & { definition: GateServiceDefinition },
): DecidedEvent[] {
  requireUsableOrganization(state.organization, 'key')
  if (state.isRepeated) return []
  refuseTakenId(state.similarIds, command.serviceId)
  refuseTooManyServices(state.count)
  const { definition, now } = command
  const { verifiedNames } = state
  checkAll({
    endpoint: () => requireSubscribedEndpoint(state.endpoint, createContext),
    name: () =>
      refuseForbiddenValues({ name: definition.name }, { ...createContext, verifiedNames }),
  })
  const data = { ...serviceIds(command), definition, registered_at: now }
  return [decidedEvent({ type: 'GateServiceRegistered', data }, command)]
}

function refuseTakenId(similarIds: readonly string[], serviceId: string): void {
  const isTaken = similarIds.includes(serviceId) || serviceId === systemServiceId
  if (!isTaken && similarIds.length === 0) return
  const variable = agentTokenEnvName(serviceId)
  const reason = isTaken ? '.' : `: ${variable} is the variable of another service.`
  throw new ApiError('request.conflict', {
    message: `The id ${serviceId} is taken${reason}`,
    details: {
      fields: [{ name: 'id', issue: 'taken', received: serviceId }],
      parameter_set: createContext.parameterSet,
    },
  })
}

function refuseTooManyServices(count: number): void {
  if (count < maxServices) return
  throw new ApiError('request.conflict', {
    message: `An organization can have ${maxServices} services, including disabled ones. Update an active service instead.`,
    details: { next_action: 'contact_support', parameter_set: createContext.parameterSet },
  })
}

const updateContext = { parameterSet: 'gate_service_update' } as const

/**
 * Returns no event if nothing changes. Throws 404 if the service does not exist, 403 if the organization is not active,
 * 409 if the service is disabled, and 422 for forbidden values, an endpoint without the subscription, or a definition
 * that is too large. The endpoint is checked only if it changes.
 */
export function decideServiceChange(
  state: ServiceState & Pick<RegistrationState, 'endpoint' | 'verifiedNames'>,
  command: ServicePath & EventIdAndTime & { changes: Partial<GateServiceDefinition> },
): DecidedEvent[] {
  requireUsableOrganization(state.organization, 'key')
  const service = requireActiveService(requireOwnedService(state.service, command))
  const { changes } = command
  const definition = { ...service.definition, ...changes }
  checkPresent<Record<'endpoint' | 'forbidden' | 'size', unknown>>({
    endpoint:
      changes.webhook_endpoint_id !== undefined &&
      (() => requireSubscribedEndpoint(state.endpoint, updateContext)),
    forbidden: () =>
      refuseForbiddenValues(changes, {
        ...updateContext,
        registered: service.definition,
        verifiedNames: state.verifiedNames,
        ...verifiedAfter(service, definition),
      }),
    size: () => refuseTooLarge(definition, updateContext),
  })
  if (isDeepStrictEqual(definition, service.definition)) return []
  const data = { ...serviceIds(command), definition, changed_at: command.now }
  return [decidedEvent({ type: 'GateServiceChanged', data }, command)]
}

// Returns the domain and prefix that stay verified with the new definition.
function verifiedAfter(service: GateServiceRow, definition: GateServiceDefinition) {
  const verifiedDomain =
    definition.website === service.definition.website ? service.verified_domain : null
  const verified = service.verified && isSameIdentity(service.definition, definition)
  const prefix = verifiedEnvPrefix({
    id: service.id,
    verified,
    verified_domain: verifiedDomain,
    definition,
  })
  return { verifiedDomain, prefix }
}

/** Throws 409 if the service is disabled. */
export function requireActiveService(service: GateServiceRow): GateServiceRow {
  if (service.status === 'active') return service
  throw new ApiError('request.conflict', { message: 'A disabled service cannot be changed.' })
}

/**
 * Returns no event if the service is already disabled. Throws 404 if it does not exist, and 403 if its organization is
 * not active.
 */
export function decideServiceDisabling(
  state: ServiceState,
  command: ServicePath & { now: number },
): DecidedEvent[] {
  requireUsableOrganization(state.organization, 'key')
  const service = requireOwnedService(state.service, command)
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

/** The same 404 for an id that is malformed, unknown, or another organization's. */
export function noSuchService(): ApiError {
  return new ApiError('request.not_found', {
    message: 'No Gate service with this id exists in this organization and environment.',
  })
}

/** Throws 404 unless the service belongs to the organization and environment. */
export function requireOwnedService(
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
  throw fieldError({ field: 'webhook_endpoint_id', parameterSet }, { issue: 'invalid', expected })
}
