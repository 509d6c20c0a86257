import { organizationFor } from '../../../infra/access/organization.ts'
import { ApiError } from '../../../infra/errors/errors.ts'
import {
  type DecidedEvent,
  decidedEvent,
  type NewEvent,
} from '../../../infra/event-store/decide.ts'
import type { GateServiceRow } from '../../../projections/gate/tables.ts'
import { changeable, membersOf, type ServicePath, type ServiceState, serviceFor } from './decide.ts'

/**
 * No event when nothing changes. Disabled services can be verified, the built-in one cannot. Withdrawing ends the
 * verification of its domain, too. ApiError: 404 no organization has it.
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
  const isSo = verified ? service.verified : !service.verified && service.verified_domain === null
  if (isSo) return []
  const { id: serviceId, organization_id: organizationId, environment } = service
  const path = { serviceId, organizationId, environment }
  const event = verified
    ? ({ type: 'GateServiceVerified', data: { ...membersOf(path), verified_at: now } } as const)
    : ({
        type: 'GateServiceVerificationWithdrawn',
        data: { ...membersOf(path), withdrawn_at: now },
      } as const)
  return [decidedEvent(event, { ...path, eventId, now })]
}

interface VerifyDomain extends ServicePath, NewEvent {
  /** That of the service when its domain was read. */
  website: string
  domain: string
  proof: 'dns' | 'file'
}

/** No event when it is verified. ApiError: 404 no such service, 403 not active, 409 disabled or another website meanwhile. */
export function decideDomainVerification(
  state: ServiceState,
  command: VerifyDomain,
): DecidedEvent[] {
  const { website, domain, proof, now } = command
  const service = checkVerifiable(state, command)
  if (service.definition.website !== website)
    throw new ApiError('request.conflict', { message: 'The website was changed meanwhile.' })
  if (service.verified_domain === domain) return []
  const data = { ...membersOf(command), domain, proof, verified_at: now }
  return [decidedEvent({ type: 'GateServiceDomainVerified', data }, command)]
}

/** The service whose domain may be verified. ApiError: 404 no such service, 403 organization not active, 409 disabled. */
export function checkVerifiable(state: ServiceState, path: ServicePath): GateServiceRow {
  organizationFor(state.organization, 'key')
  return changeable(serviceFor(state.service, path))
}
