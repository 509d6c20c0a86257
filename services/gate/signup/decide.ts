import { ApiError, invalidField } from '../../../infra/errors/errors.ts'
import type { DecidedEvent } from '../../../infra/event-store/decide.ts'
import type { GateSessionId } from '../../../infra/ids.ts'
import type { GateSessionRow } from '../../../projections/gate/tables.ts'
import type { OrganizationRow } from '../../../projections/organizations/tables.ts'
import type { GateSessionOpened } from '../../../schemas/events.ts'
import { type RegisteredService, requireOpenService } from '../registry/registered.ts'
import {
  createParameterSet,
  foundSession,
  isWaiting,
  pendingSession,
  phaseOf,
  rejected,
  sessionDecision,
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
 * No event when the command is repeated. ApiError: 404 unless the service is open and its organization active, 422 where
 * it asks for a claim and the agent cannot.
 */
export function decideOpening(state: OpeningState, command: OpenSignup): DecidedEvent[] {
  const { service, organization, session } = state
  if (session) return []
  const isOwnerActive = service?.organization_id === null || organization?.status === 'active'
  const open = requireOpenService(isOwnerActive ? service : undefined)
  const { id: service_id, organization_id, environment, definition } = open
  if (definition.claim_required && command.spec.claim === null) throw unclaimable()
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
  return [sessionDecision(opened, { type: 'GateSessionOpened', data }, { now })]
}

function unclaimable(): ApiError {
  const expected = 'supported: this service asks for the code that the consent page shows'
  const details = { parameter_set: createParameterSet }
  return invalidField(
    { name: 'claim', issue: 'required', expected },
    details,
    'gate.validation_failed',
  )
}

/**
 * The session while a person may decide about it. ApiError: 404 without it, 410 when it has expired, 409 when it is
 * resolved. Field `status` then says how: approved, declined, closed, integrator_failed or claim_failed.
 */
export function decidableSession(session: GateSessionRow | undefined, now: number): GateSessionRow {
  const ending = session?.status === 'approved' ? 'approved' : session?.rejection
  if (!session || !ending) return pendingSession(session, now)
  const fields = [
    { name: 'status', issue: ending },
    { name: 'kind', issue: session.kind },
  ]
  throw new ApiError('gate.session_already_resolved', { details: { fields } })
}

interface At {
  now: number
}

/** How long a page has to stay closed, because a reload closes it, too. */
export const reloadMs = 3000

/**
 * No event when the session is rejected. ApiError: 404 no such session, 410 expired, 409 approved or its approval has
 * started.
 */
export function decideDecline(session: GateSessionRow | undefined, { now }: At): DecidedEvent[] {
  const found = checkDeclinable(session, { now })
  return found.status === 'rejected' ? [] : [rejected(found, { reason: 'declined', now })]
}

/** The session where it is rejected or may be. ApiError as `decideDecline`. */
export function checkDeclinable(session: GateSessionRow | undefined, { now }: At): GateSessionRow {
  if (session?.status === 'rejected') return session
  const pending = pendingSession(session, now)
  if (pending.approval_started_at === null) return pending
  throw new ApiError('gate.approval_in_progress', { headers: { 'retry-after': '1' } })
}

/** `closingForMs` is null while the page is open. No event when it was opened again, or the session has ended. */
export function decideClosedPage(
  { session, closingForMs }: { session: GateSessionRow | undefined; closingForMs: number | null },
  { now }: At,
): DecidedEvent[] {
  // Who has approved may close the page, and pass the code on then.
  if (!session || phaseOf(session) !== 'undecided') return []
  // What has expired meanwhile ends as that.
  if (closingForMs === null || closingForMs < reloadMs || session.expires_at <= now) return []
  return [rejected(session, { reason: 'closed', now })]
}

/**
 * No event when this very request has acknowledged it. ApiError: 404 no such session, 410 expired before an approval,
 * 403 not its ack token, 410 the delivery has ended.
 */
export function decideAcknowledgement(
  { session, isAckToken }: { session: GateSessionRow | undefined; isAckToken: boolean },
  { acknowledgementId, now }: At & { acknowledgementId: string },
): DecidedEvent[] {
  const found = foundSession(session)
  if (found.status === 'expired') throw new ApiError('gate.session_expired')
  if (!isAckToken) throw new ApiError('gate.delivery_ack_invalid')
  if (found.delivery_acknowledgement_id === acknowledgementId) return []
  requireDelivery(found, now)
  const data = {
    gate_session_id: found.id,
    acknowledgement_id: acknowledgementId,
    acknowledged_at: now,
  }
  return [sessionDecision(found, { type: 'GateDeliveryAcknowledged', data }, { now })]
}

/** ApiError 410, saying why, unless credentials wait for their agent. */
export function requireDelivery(session: GateSessionRow, now: number): void {
  if (isWaiting(session, now)) return
  if (session.delivery === 'acknowledged') throw new ApiError('gate.delivery_consumed')
  throw deliveryGone()
}

const notAcknowledged =
  'Nobody acknowledged the credentials within 24 hours, or their key is gone, as after a restore from a backup.'

export const deliveryGone = () =>
  new ApiError('gate.delivery_consumed', { message: notAcknowledged })

/** No event once an approval has started: it ends the session itself. */
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
  return [sessionDecision(session, { type: 'GateSessionExpired', data }, { now })]
}

export function decideDeliveryExpiry(
  session: GateSessionRow | undefined,
  { now }: At,
): DecidedEvent[] {
  if (session?.delivery !== 'waiting' || !isOver(session.delivery_expires_at, now)) return []
  const data = { gate_session_id: session.id, expired_at: now }
  return [sessionDecision(session, { type: 'GateDeliveryExpired', data }, { now })]
}

export function decideCodeExpiry(session: GateSessionRow | undefined, { now }: At): DecidedEvent[] {
  if (session?.code !== 'issued' || !isOver(session.code_expires_at, now)) return []
  const data = { gate_session_id: session.id, expired_at: now }
  return [sessionDecision(session, { type: 'LoginCodeExpired', data }, { now })]
}

const isOver = (time: number | null, now: number) => time !== null && time <= now
