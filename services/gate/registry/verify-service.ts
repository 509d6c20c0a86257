import { ApiError } from '../../../infra/errors/errors.ts'
import type { DomainEvent } from '../../../infra/event-store/codec.ts'
import type { Decision } from '../../../infra/event-store/decide.ts'
import { decided } from '../../../infra/event-store/decided.ts'
import type { GateServiceRow } from '../../../projections/gate/tables.ts'

export interface VerifyService {
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
export function verifyService(service: GateServiceRow | undefined, command: VerifyService): Decision[] {
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
