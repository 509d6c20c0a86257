import { isDeepStrictEqual } from 'node:util'
import { organizationFor } from '../../../infra/access/organization.ts'
import { checkGiven } from '../../../infra/errors/check-all.ts'
import { ApiError } from '../../../infra/errors/errors.ts'
import { type DecidedEvent, decidedEvent } from '../../../infra/event-store/decide.ts'
import { derivedId } from '../../../infra/ids.ts'
import { agentTokenEnvName, systemServiceId } from '../../../infra/wire/gate.ts'
import { isSameIdentity } from '../../../projections/gate/evolve.ts'
import type { ServiceScope } from '../../../projections/gate/queries.ts'
import type { GateServiceRow } from '../../../projections/gate/tables.ts'
import type { OrganizationRow } from '../../../projections/organizations/tables.ts'
import type { EndpointRow } from '../../../projections/webhooks/tables.ts'
import type { GateServiceDefinition } from '../../../schemas/events.ts'
import { type DefinitionChanges, refuseLarge } from './definition.ts'
import { type FieldRules, refusedMember } from './fields.ts'
import { refuseForbidden } from './forbidden.ts'
import { ownedPrefix } from './ownership.ts'

const registrationParameterSet = 'gate_service_create'
const maxServices = 5

export interface RegistrationState {
  organization: OrganizationRow | undefined
  isRepeated: boolean
  /** Used ids that are the same but for - and _. */
  alike: readonly string[]
  /** The organization's services in both environments, disabled ones included. */
  count: number
  /** Of the verified services of others. */
  verifiedNames: readonly string[]
  endpoint: EndpointRow | undefined
}

interface RegisterService extends ServicePath {
  definition: GateServiceDefinition
  eventId: string
  now: number
}

/**
 * No event when the command is repeated. ApiError: 404 no such organization, 403 not active, 409 id or variable used,
 * or too many services, 422 an endpoint without the subscription.
 */
export function decideRegistration(state: RegistrationState, command: RegisterService): DecidedEvent[] {
  organizationFor(state.organization, 'key')
  if (state.isRepeated) return []
  refuseUsedId(state, command)
  refuseMany(state)
  const { definition, now } = command
  const parameterSet = registrationParameterSet
  checkGiven<Record<'endpoint' | 'name', unknown>>({
    endpoint: () => requireSubscribedEndpoint(state.endpoint, { parameterSet }),
    name: () =>
      refuseForbidden({ name: definition.name }, { parameterSet, verifiedNames: state.verifiedNames }),
  })
  const data = { ...membersOf(command), definition, registered_at: now }
  return [decidedEvent({ type: 'GateServiceRegistered', data }, command)]
}

function refuseUsedId({ alike }: RegistrationState, { serviceId }: RegisterService): void {
  if (alike.includes(serviceId) || serviceId === systemServiceId) {
    throw idConflict(serviceId, `The id ${serviceId} is taken.`)
  }
  if (alike.length === 0) return
  const variable = agentTokenEnvName(serviceId)
  throw idConflict(serviceId, `The id ${serviceId} is taken: ${variable} is the variable of another service.`)
}

function idConflict(serviceId: string, message: string): ApiError {
  return new ApiError('request.conflict', {
    message,
    details: {
      fields: [{ name: 'id', issue: 'taken', received: serviceId }],
      parameter_set: registrationParameterSet,
    },
  })
}

function refuseMany({ count }: RegistrationState): void {
  if (count < maxServices) return
  throw new ApiError('request.conflict', {
    message: `An organization can have ${maxServices} services in all, and disabled ones count, too: change one that is active instead of registering another.`,
    details: { next_action: 'contact_support', parameter_set: registrationParameterSet },
  })
}

const changeParameterSet = 'gate_service_update'

interface ChangeState extends ServiceState {
  endpoint: EndpointRow | undefined
  /** Of the verified services of others; empty where the name stays. */
  verifiedNames: readonly string[]
}

interface ChangeService extends ServicePath {
  changes: DefinitionChanges
  eventId: string
  now: number
}

/**
 * No event when nothing changes. ApiError: 404 no such service, 403 organization not active, 409 disabled, 422 an
 * endpoint without the subscription, or too large. An endpoint that the change does not name is not checked.
 */
export function decideServiceChange(state: ChangeState, command: ChangeService): DecidedEvent[] {
  organizationFor(state.organization, 'key')
  const service = changeable(serviceFor(state.service, command))
  const { changes } = command
  const definition = { ...service.definition, ...changes }
  const parameterSet = changeParameterSet
  checkGiven<Record<'endpoint' | 'forbidden' | 'size', unknown>>({
    endpoint:
      changes.webhook_endpoint_id !== undefined &&
      (() => requireSubscribedEndpoint(state.endpoint, { parameterSet })),
    forbidden: () =>
      refuseForbidden(changes, {
        parameterSet,
        registered: service.definition,
        verifiedNames: state.verifiedNames,
        ...ownedAfter(service, definition),
      }),
    size: () => refuseLarge(definition, { parameterSet }),
  })
  if (isDeepStrictEqual(definition, service.definition)) return []
  const data = { ...membersOf(command), definition, changed_at: command.now }
  return [decidedEvent({ type: 'GateServiceChanged', data }, command)]
}

// What is verified of the service once it is so defined.
function ownedAfter(service: GateServiceRow, definition: GateServiceDefinition) {
  const verifiedDomain = definition.website === service.definition.website ? service.verified_domain : null
  const verified = service.verified && isSameIdentity(service.definition, definition)
  const prefix = ownedPrefix({ id: service.id, verified, verified_domain: verifiedDomain, definition })
  return { verifiedDomain, prefix }
}

/** ApiError 409: it is disabled. */
export function changeable(service: GateServiceRow): GateServiceRow {
  if (service.status === 'active') return service
  throw new ApiError('request.conflict', { message: 'A disabled service cannot be changed.' })
}

interface DisableService extends ServicePath {
  now: number
}

/** No event when it is disabled. ApiError: 404 no such service, 403 organization not active. */
export function decideServiceDisabling(state: ServiceState, command: DisableService): DecidedEvent[] {
  organizationFor(state.organization, 'key')
  const service = serviceFor(state.service, command)
  if (service.status === 'disabled') return []
  const data = { ...membersOf(command), disabled_at: command.now }
  const eventId = derivedId('evt', command.serviceId, 'disabled')
  return [decidedEvent({ type: 'GateServiceDisabled', data }, { ...command, eventId })]
}

export interface ServicePath extends ServiceScope {
  serviceId: string
}

export const membersOf = ({ serviceId, organizationId, environment }: ServicePath) => ({
  service_id: serviceId,
  organization_id: organizationId,
  environment,
})

export interface ServiceState {
  organization: OrganizationRow | undefined
  service: GateServiceRow | undefined
}

/** The same for an id that is malformed, unknown, or of others: nobody learns which. */
export function noSuchService(): ApiError {
  return new ApiError('request.not_found', {
    message: 'No Gate service with this id exists in this organization and environment.',
  })
}

export function serviceFor(
  service: GateServiceRow | undefined,
  { organizationId, environment }: ServiceScope,
): GateServiceRow {
  if (service?.organization_id === organizationId && service.environment === environment) return service
  throw noSuchService()
}

function requireSubscribedEndpoint(
  endpoint: EndpointRow | undefined,
  { parameterSet }: Pick<FieldRules, 'parameterSet'>,
): void {
  if (endpoint?.status === 'active' && endpoint.event_types.includes('gate.session.approved')) return
  const expected =
    'an active webhook endpoint of this organization and environment that is subscribed to gate.session.approved'
  throw refusedMember({ field: 'webhook_endpoint_id', parameterSet }, { issue: 'invalid', expected })
}
