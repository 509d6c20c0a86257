import { isDeepStrictEqual } from 'node:util'
import { ApiError } from '../../../infra/errors/errors.ts'
import type { DomainEvent } from '../../../infra/event-store/codec.ts'
import { type Decision, decided } from '../../../infra/event-store/decide.ts'
import { derivedId } from '../../../infra/ids.ts'
import { agentTokenEnvName } from '../../../infra/wire/gate.ts'
import type { ServiceScope } from '../../../projections/gate/queries.ts'
import type { GateServiceRow } from '../../../projections/gate/tables.ts'
import { organizationFor } from '../../../projections/organizations/queries.ts'
import type { OrganizationRow } from '../../../projections/organizations/tables.ts'
import type { EndpointRow } from '../../../projections/webhooks/tables.ts'
import type {
  GateServiceChanged,
  GateServiceDefinition,
  GateServiceDisabled,
  GateServiceRegistered,
} from '../../../schemas/events.ts'
import { type DefinitionChanges, refuseLarge } from './definition.ts'
import { type FieldRules, refusedMember } from './fields.ts'
import { systemServiceId } from './registered.ts'

const registrationParameterSet = 'gate_service_create'
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

interface RegisterService extends ServicePath {
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
export function decideRegistration(state: RegistrationState, command: RegisterService): Decision[] {
  organizationFor(state.organization, 'key')
  if (state.isRepeated) return []
  refuseUsedId(state, command)
  refuseMany(state)
  requireSubscribedEndpoint(state.endpoint, { parameterSet: registrationParameterSet })
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
    message: `An organization can have ${maxServices} services in all, disabled ones included.`,
    details: { next_action: 'contact_support', parameter_set: registrationParameterSet },
  })
}

const changeParameterSet = 'gate_service_update'

interface ChangeState extends ServiceState {
  /** The one that the change names, as the key sees it. */
  endpoint: EndpointRow | undefined
}

interface ChangeService extends ServicePath {
  /** Each replaces what was there as a whole. */
  changes: DefinitionChanges
  eventId: string
  /** Epoch milliseconds. */
  now: number
}

/**
 * Describes the service anew; no event when it is so described already. 404 without it, 403 when its organization is
 * not active, 409 when it is disabled, 422 for an endpoint that would not be told of approvals
 * and for a description that is too large. An endpoint that the
 * change does not name is left as it is, told or not.
 */
export function decideServiceChange(state: ChangeState, command: ChangeService): Decision[] {
  organizationFor(state.organization, 'key')
  const service = changeable(serviceFor(state.service, command))
  const { changes } = command
  if (changes.webhook_endpoint_id !== undefined) {
    requireSubscribedEndpoint(state.endpoint, { parameterSet: changeParameterSet })
  }
  const definition = { ...service.definition, ...changes }
  refuseLarge(definition, { parameterSet: changeParameterSet })
  return isDeepStrictEqual(definition, service.definition) ? [] : [changed(command, definition)]
}

function changeable(service: GateServiceRow): GateServiceRow {
  if (service.status === 'active') return service
  throw new ApiError('request.conflict', { message: 'A disabled service cannot be changed.' })
}

function changed(
  { serviceId, organizationId, environment, eventId, now }: ChangeService,
  definition: GateServiceRow['definition'],
): Decision {
  const data: GateServiceChanged = {
    service_id: serviceId,
    organization_id: organizationId,
    environment,
    definition,
    changed_at: now,
  }
  return decided({ type: 'GateServiceChanged', data }, { organizationId, environment, eventId, now })
}

interface DisableService extends ServicePath {
  /** Epoch milliseconds. */
  now: number
}

/** Disables a service for good; no event when it is disabled. 404 without it, 403 when its organization is not active. */
export function decideServiceDisabling(state: ServiceState, command: DisableService): Decision[] {
  organizationFor(state.organization, 'key')
  const service = serviceFor(state.service, command)
  if (service.status === 'disabled') return []
  const { serviceId, organizationId, environment, now } = command
  const data: GateServiceDisabled = {
    service_id: serviceId,
    organization_id: organizationId,
    environment,
    disabled_at: now,
  }
  const eventId = derivedId('evt', serviceId, 'disabled')
  return [decided({ type: 'GateServiceDisabled', data }, { organizationId, environment, eventId, now })]
}

interface VerifyService {
  /** false = withdraw it. */
  verified: boolean
  eventId: string
  /** Epoch milliseconds. */
  now: number
}

/**
 * The operator's word on who is behind a service, disabled ones too; no event when it is as wanted. 404 without an
 * organization's service of that id: the built-in one is verified as it is.
 */
export function decideVerification(service: GateServiceRow | undefined, command: VerifyService): Decision[] {
  if (!service) {
    throw new ApiError('request.not_found', {
      message: 'service: no organization has a service of this id.',
      details: { fields: [{ name: 'service', issue: 'not_found' }] },
    })
  }
  const { organization_id: organizationId, environment } = service
  const { verified, eventId, now } = command
  if (service.verified === verified) return []
  return [decided(verificationEvent(service, command), { organizationId, environment, eventId, now })]
}

function verificationEvent(
  { id: service_id, organization_id, environment }: GateServiceRow,
  { verified, now }: VerifyService,
): DomainEvent {
  const about = { service_id, organization_id, environment }
  return verified
    ? { type: 'GateServiceVerified', data: { ...about, verified_at: now } }
    : { type: 'GateServiceVerificationWithdrawn', data: { ...about, withdrawn_at: now } }
}

/** Names one service, as one key sees it. */
export interface ServicePath extends ServiceScope {
  serviceId: string
}

/** What a decision about one service is made from. */
interface ServiceState {
  organization: OrganizationRow | undefined
  /** Whoever owns it. */
  service: GateServiceRow | undefined
}

/** The same for an id that is malformed, unknown, or of others: nobody learns which. */
export function noSuchService(): ApiError {
  return new ApiError('request.not_found', {
    message: 'No Gate service with this id exists in this organization and environment.',
  })
}

/** The service, active or disabled, if it is of that organization and environment; else 404. */
export function serviceFor(
  service: GateServiceRow | undefined,
  { organizationId, environment }: ServiceScope,
): GateServiceRow {
  if (service?.organization_id === organizationId && service.environment === environment) return service
  throw noSuchService()
}

/** 422 unless the endpoint, looked up as the service's owner sees it, is told of approvals. */
function requireSubscribedEndpoint(
  endpoint: EndpointRow | undefined,
  { parameterSet }: Pick<FieldRules, 'parameterSet'>,
): void {
  if (endpoint?.status === 'active' && endpoint.event_types.includes('gate.session.approved')) return
  const expected =
    'an active webhook endpoint of this organization and environment that is subscribed to gate.session.approved'
  throw refusedMember({ field: 'webhook_endpoint_id', parameterSet }, { issue: 'invalid', expected })
}
