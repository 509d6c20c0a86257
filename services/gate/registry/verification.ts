import { requireUsableOrganization } from '../../../infra/access/organization.ts'
import { ApiError } from '../../../infra/errors/errors.ts'
import {
  type DecidedEvent,
  decidedEvent,
  type EventIdAndTime,
} from '../../../infra/event-store/decide.ts'
import type { GateServiceRow } from '../../../projections/gate/tables.ts'
import {
  requireActiveService,
  requireOwnedService,
  type ServicePath,
  type ServiceState,
  serviceIds,
} from './decide.ts'

/**
 * Verifies a service, or withdraws its verification and that of its domain. Returns no event if nothing changes. Throws
 * 404 if no organization has the service, as for the built-in one. Disabled services can be verified.
 */
export function decideVerification(
  service: GateServiceRow | undefined,
  { verified, eventId, now }: EventIdAndTime & { verified: boolean },
): DecidedEvent[] {
  if (!service) {
    throw new ApiError('request.not_found', {
      message: 'service: no organization has a service of this id.',
      details: { fields: [{ name: 'service', issue: 'not_found' }] },
    })
  }
  const isWithdrawn = !service.verified && service.verified_domain === null
  if (verified ? service.verified : isWithdrawn) return []
  const { id: serviceId, organization_id: organizationId, environment } = service
  const path = { serviceId, organizationId, environment }
  const ids = serviceIds(path)
  const event = verified
    ? ({ type: 'GateServiceVerified', data: { ...ids, verified_at: now } } as const)
    : ({ type: 'GateServiceVerificationWithdrawn', data: { ...ids, withdrawn_at: now } } as const)
  return [decidedEvent(event, { ...path, eventId, now })]
}

interface VerifyDomain extends ServicePath, EventIdAndTime {
  /** Website at the time of the challenge lookup. */
  website: string
  domain: string
  proof: 'dns' | 'file'
}

/**
 * Returns no event if the domain is already verified. Throws 404 if the service does not exist, 403 if its organization
 * is not active, and 409 if it is disabled or its website was changed meanwhile.
 */
export function decideDomainVerification(
  state: ServiceState,
  command: VerifyDomain,
): DecidedEvent[] {
  const { website, domain, proof, now } = command
  const service = requireVerifiable(state, command)
  if (service.definition.website !== website)
    throw new ApiError('request.conflict', { message: 'The website was changed meanwhile.' })
  if (service.verified_domain === domain) return []
  const data = { ...serviceIds(command), domain, proof, verified_at: now }
  return [decidedEvent({ type: 'GateServiceDomainVerified', data }, command)]
}

/** Throws 404 if the service does not exist, 403 if its organization is not active, and 409 if it is disabled. */
export function requireVerifiable(state: ServiceState, path: ServicePath): GateServiceRow {
  requireUsableOrganization(state.organization, 'key')
  return requireActiveService(requireOwnedService(state.service, path))
}
