import { ApiError, invalidField } from '../../../infra/errors/errors.ts'
import type { DecidedEvent } from '../../../infra/event-store/decide.ts'
import type { GateSessionId } from '../../../infra/ids.ts'
import type { GateSessionRow } from '../../../projections/gate/tables.ts'
import type { OrganizationRow } from '../../../projections/organizations/tables.ts'
import type { GateSessionOpened } from '../../../schemas/events.ts'
import { type RegisteredService, requireOpenService } from '../registry/registered.ts'
import {
  createParameterSet,
  hasDelivery,
  phaseOf,
  rejection,
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
 * No event for a repeated command. ApiError: 404 unless the service is open and its organization active, 422 if the
 * service requires a claim and the agent does not support it.
 */
export function decideOpening(state: OpeningState, command: OpenSignup): DecidedEvent[] {
  const { service, organization, session } = state
  if (session) return []
  const isOwnerActive = service?.organization_id === null || organization?.status === 'active'
  const openService = requireOpenService(isOwnerActive ? service : undefined)
  const { id: service_id, organization_id, environment, definition } = openService
  if (definition.claim_required && command.spec.claim === null) throw claimRequired()
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

function claimRequired(): ApiError {
  const expected = 'supported: this service asks for the code that the consent page shows'
  const details = { parameter_set: createParameterSet }
  return invalidField(
    { name: 'claim', issue: 'required', expected },
    details,
    'gate.validation_failed',
  )
}

/**
 * Returns the session if a person can decide it. ApiError: 404 no such session, 410 expired, 409 resolved. The field
 * `status` of the 409 says how: approved, declined, closed, integrator_failed or claim_failed.
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

interface At {
  now: number
}

/** Time that a page must stay closed to reject its session, because a reload also closes it. */
export const reloadMs = 3000

/**
 * No event if the session is already rejected. ApiError: 404 no such session, 410 expired, 409 approved or in progress.
 */
export function decideDecline(session: GateSessionRow | undefined, { now }: At): DecidedEvent[] {
  const declinable = checkDeclinable(session, { now })
  if (declinable.status === 'rejected') return []
  return [rejection(declinable, { reason: 'declined', now })]
}

/** Returns the session if it is rejected or can be. ApiError as `decideDecline`. */
export function checkDeclinable(session: GateSessionRow | undefined, { now }: At): GateSessionRow {
  if (session?.status === 'rejected') return session
  const pending = requirePending(session, now)
  if (pending.approval_started_at === null) return pending
  throw new ApiError('gate.approval_in_progress', { headers: { 'retry-after': '1' } })
}

/** No event if the page is open (`closedMs` is null) or was closed only now, or if the session has ended. */
export function decideClosedPage(
  { session, closedMs }: { session: GateSessionRow | undefined; closedMs: number | null },
  { now }: At,
): DecidedEvent[] {
  // After approving, a person may close the page before giving the claim code to the agent.
  if (!session || phaseOf(session) !== 'undecided') return []
  // An expired session ends as expired, not as closed.
  if (closedMs === null || closedMs < reloadMs || session.expires_at <= now) return []
  return [rejection(session, { reason: 'closed', now })]
}

/**
 * No event if the same request acknowledged it before. ApiError: 404 no such session, 403 wrong ack token, 410 the
 * session expired before an approval, or the delivery has ended.
 */
export function decideAcknowledgement(
  { session, isAckToken }: { session: GateSessionRow | undefined; isAckToken: boolean },
  { acknowledgementId, now }: At & { acknowledgementId: string },
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

/** ApiError 410 with the reason, unless the agent can still fetch its credentials. */
export function requireDelivery(session: GateSessionRow, now: number): void {
  if (hasDelivery(session, now)) return
  if (session.delivery === 'acknowledged') throw new ApiError('gate.delivery_consumed')
  throw deliveryGone()
}

const notAcknowledged =
  'Nobody acknowledged the credentials within 24 hours, or their key is gone, as after a restore from a backup.'

export const deliveryGone = () =>
  new ApiError('gate.delivery_consumed', { message: notAcknowledged })

/** No event once an approval has started, because only its outcome ends the session. */
export function decideSessionExpiry(
  session: GateSessionRow | undefined,
  { now }: At,
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
  { now }: At,
): DecidedEvent[] {
  if (session?.delivery !== 'waiting' || !hasPassed(session.delivery_expires_at, now)) return []
  const data = { gate_session_id: session.id, expired_at: now }
  return [sessionEvent(session, { type: 'GateDeliveryExpired', data }, { now })]
}

export function decideCodeExpiry(session: GateSessionRow | undefined, { now }: At): DecidedEvent[] {
  if (session?.code !== 'issued' || !hasPassed(session.code_expires_at, now)) return []
  const data = { gate_session_id: session.id, expired_at: now }
  return [sessionEvent(session, { type: 'LoginCodeExpired', data }, { now })]
}

const hasPassed = (time: number | null, now: number) => time !== null && time <= now
