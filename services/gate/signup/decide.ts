import { ApiError, invalidField } from '../../../infra/errors/errors.ts'
import type { DecidedEvent } from '../../../infra/event-store/decide.ts'
import type { GateSessionId } from '../../../infra/ids.ts'
import type { GateSessionRow } from '../../../projections/gate/tables.ts'
import type { OrganizationRow } from '../../../projections/organizations/tables.ts'
import type { GateSessionOpened } from '../../../schemas/events.ts'
import { type RegisteredService, requireOpenService } from '../registry/registered-services.ts'
import {
  createParameterSet,
  hasDelivery,
  phaseOf,
  rejectionEvent,
  requirePending,
  requireSession,
  sessionEvent,
  sessionTtlMs,
} from '../sessions.ts'

export type SessionSpec = Pick<
  GateSessionOpened,
  | 'account_name'
  | 'metadata'
  | 'delivery_key_id'
  | 'delivery_public_key'
  | 'requested_ip'
  | 'requested_user_agent'
  | 'claim'
>

interface OpenSignup {
  gateSessionId: GateSessionId
  spec: SessionSpec
  pollTokenHash: string
  confirmationCode: string
  now: number
}

interface OpeningState {
  service: RegisteredService | undefined
  organization: OrganizationRow | undefined
  session: GateSessionRow | undefined
}

/**
 * Returns no event for a repeated command. Throws 404 unless the service is open and its organization active, and 422
 * if the service requires a claim that the agent does not support.
 */
export function decideOpening(state: OpeningState, command: OpenSignup): DecidedEvent[] {
  const { service, organization, session } = state
  if (session) return []
  const isOwnerActive = service?.organization_id === null || organization?.status === 'active'
  const openService = requireOpenService(isOwnerActive ? service : undefined)
  const { id: service_id, organization_id, environment, definition } = openService
  if (definition.claim_required && command.spec.claim === null) throw claimRequiredError()
  const { gateSessionId, spec, pollTokenHash, confirmationCode, now } = command
  const data: GateSessionOpened = {
    gate_session_id: gateSessionId,
    service_id,
    organization_id,
    environment,
    ...spec,
    poll_token_hash: pollTokenHash,
    opened_at: now,
    expires_at: now + sessionTtlMs,
    confirmation_code: confirmationCode,
  }
  const opened = { id: gateSessionId, organization_id, environment }
  return [sessionEvent(opened, { type: 'GateSessionOpened', data }, { now })]
}

function claimRequiredError(): ApiError {
  const expected = 'supported: this service asks for the code that the consent page shows'
  const details = { parameter_set: createParameterSet }
  return invalidField(
    { name: 'claim', issue: 'required', expected },
    details,
    'gate.validation_failed',
  )
}

/**
 * Returns the session if a person can decide it. Throws 404 if there is no session, 410 if it has expired, and 409 if
 * it is resolved; the field `status` of the 409 has the outcome: approved, declined, closed, integrator_failed or
 * claim_failed.
 */
export function requireDecidable(session: GateSessionRow | undefined, now: number): GateSessionRow {
  const outcome = session?.status === 'approved' ? 'approved' : session?.rejection
  if (!session || !outcome) return requirePending(session, now)
  const fields = [
    { name: 'status', issue: outcome },
    { name: 'kind', issue: session.kind },
  ]
  throw new ApiError('gate.session_already_resolved', { details: { fields } })
}

interface Now {
  now: number
}

/** Time that a page must stay closed before its session is rejected. Exceeds the duration of a reload. */
export const reloadMs = 3000

/** Throws 404 without a session, 410 if it has expired, and 409 if it is approved or its approval is in progress. */
export function decideDecline(session: GateSessionRow | undefined, { now }: Now): DecidedEvent[] {
  const declinable = requireDeclinable(session, { now })
  if (declinable.status === 'rejected') return []
  return [rejectionEvent(declinable, { reason: 'declined', now })]
}

/** Returns the session if it is rejected or can be rejected. Throws the errors of `decideDecline`. */
export function requireDeclinable(
  session: GateSessionRow | undefined,
  { now }: Now,
): GateSessionRow {
  if (session?.status === 'rejected') return session
  const pending = requirePending(session, now)
  if (pending.approval_started_at === null) return pending
  throw new ApiError('gate.approval_in_progress', { headers: { 'retry-after': '1' } })
}

/** Returns no event if the page is open (`closedMs` is null) or was closed just now, or if the session has ended. */
export function decideClosedPage(
  { session, closedMs }: { session: GateSessionRow | undefined; closedMs: number | null },
  { now }: Now,
): DecidedEvent[] {
  // After the approval, the page can be closed while the person passes the claim code to the agent.
  if (!session || phaseOf(session) !== 'undecided') return []
  // A session past its time is expired by `decideSessionExpiry` instead.
  if (closedMs === null || closedMs < reloadMs || session.expires_at <= now) return []
  return [rejectionEvent(session, { reason: 'closed', now })]
}

/**
 * Returns no event if the same request acknowledged the delivery before. Throws 404 if there is no session, 403 for a
 * wrong ack token, and 410 if the session expired without an approval or the delivery has ended.
 */
export function decideAcknowledgement(
  { session, isAckToken }: { session: GateSessionRow | undefined; isAckToken: boolean },
  { acknowledgementId, now }: Now & { acknowledgementId: string },
): DecidedEvent[] {
  const approved = requireSession(session)
  if (approved.status === 'expired') throw new ApiError('gate.session_expired')
  if (!isAckToken) throw new ApiError('gate.delivery_ack_invalid')
  if (approved.delivery_acknowledgement_id === acknowledgementId) return []
  requireDelivery(approved, now)
  const data = {
    gate_session_id: approved.id,
    acknowledgement_id: acknowledgementId,
    acknowledged_at: now,
  }
  return [sessionEvent(approved, { type: 'GateDeliveryAcknowledged', data }, { now })]
}

/** Throws 410 with the reason, unless the agent can still fetch its credentials. */
export function requireDelivery(session: GateSessionRow, now: number): void {
  if (hasDelivery(session, now)) return
  if (session.delivery === 'acknowledged') throw new ApiError('gate.delivery_consumed')
  throw deliveryGoneError()
}

const notAcknowledged =
  'Nobody acknowledged the credentials within 24 hours, or their key is gone, as after a restore from a backup.'

export const deliveryGoneError = () =>
  new ApiError('gate.delivery_consumed', { message: notAcknowledged })

/** Returns no event once an approval has started, because then only the outcome of the approval ends the session. */
export function decideSessionExpiry(
  session: GateSessionRow | undefined,
  { now }: Now,
): DecidedEvent[] {
  if (
    session?.status !== 'pending' ||
    session.approval_started_at !== null ||
    session.expires_at > now
  )
    return []
  const data = { gate_session_id: session.id, expired_at: now }
  return [sessionEvent(session, { type: 'GateSessionExpired', data }, { now })]
}

export function decideDeliveryExpiry(
  session: GateSessionRow | undefined,
  { now }: Now,
): DecidedEvent[] {
  if (session?.delivery !== 'waiting' || !hasPassed(session.delivery_expires_at, now)) return []
  const data = { gate_session_id: session.id, expired_at: now }
  return [sessionEvent(session, { type: 'GateDeliveryExpired', data }, { now })]
}

export function decideCodeExpiry(
  session: GateSessionRow | undefined,
  { now }: Now,
): DecidedEvent[] {
  if (session?.code !== 'issued' || !hasPassed(session.code_expires_at, now)) return []
  const data = { gate_session_id: session.id, expired_at: now }
  return [sessionEvent(session, { type: 'LoginCodeExpired', data }, { now })]
}

const hasPassed = (time: number | null, now: number) => time !== null && time <= now
