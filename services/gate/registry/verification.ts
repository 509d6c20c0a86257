import { organizationFor } from '../../../infra/access/organization.ts'
import { ApiError } from '../../../infra/errors/errors.ts'
import {
  type DecidedEvent,
  decidedEvent,
  type NewEvent,
} from '../../../infra/event-store/decide.ts'
import type { GateServiceRow } from '../../../projections/gate/tables.ts'
import {
  requireActive,
  requireOwned,
  type ServicePath,
  type ServiceState,
  serviceIds,
} from './decide.ts'

/**
 * Verifies a service, or withdraws its verification together with that of its domain. No event if nothing changes.
 * Disabled services can be verified, the built-in one cannot. ApiError: 404 no organization has the service.
 */
export function decideVerification(
  service: GateServiceRow | undefined,
  { verified, eventId, now }: NewEvent & { verified: boolean },
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

interface VerifyDomain extends ServicePath, NewEvent {
  /** Website of the service when the challenge was looked up. */
  website: string
  domain: string
  proof: 'dns' | 'file'
}

/**
 * No event if the domain is already verified. ApiError: 404 no such service, 403 organization not active, 409 disabled
 * or the website was changed meanwhile.
 */
export function decideDomainVerification(
  state: ServiceState,
  command: VerifyDomain,
): DecidedEvent[] {
  const { website, domain, proof, now } = command
  const service = checkVerifiable(state, command)
  if (service.definition.website !== website)
    throw new ApiError('request.conflict', { message: 'The website was changed meanwhile.' })
  if (service.verified_domain === domain) return []
  const data = { ...serviceIds(command), domain, proof, verified_at: now }
  return [decidedEvent({ type: 'GateServiceDomainVerified', data }, command)]
}

/** Returns the service. ApiError: 404 no such service, 403 organization not active, 409 disabled. */
export function checkVerifiable(state: ServiceState, path: ServicePath): GateServiceRow {
  organizationFor(state.organization, 'key')
  return requireActive(requireOwned(state.service, path))
}
