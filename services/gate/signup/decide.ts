import { ApiError } from '../../../infra/errors/errors.ts'
import type { Decision } from '../../../infra/event-store/decide.ts'
import type { GateSessionId } from '../../../infra/ids.ts'
import type { GateSessionRow } from '../../../projections/gate/tables.ts'
import type { OrganizationRow } from '../../../projections/organizations/tables.ts'
import type { GateSessionOpened } from '../../../schemas/events.ts'
import { type RegisteredService, requireOpenService } from '../registry/registered.ts'
import { foundSession, pendingSession, sessionDecision, sessionTtlMs } from '../sessions.ts'

/** A request for a signup, checked and normalised. */
export type SessionSpec = Pick<
  GateSessionOpened,
  | 'account_name'
  | 'metadata'
  | 'delivery_key_id'
  | 'delivery_public_key'
  | 'requested_ip'
  | 'requested_user_agent'
>

interface OpenSignup {
  gateSessionId: GateSessionId
  spec: SessionSpec
  /** The poll token as it is stored. */
  pollTokenHash: string
  /** Epoch milliseconds. */
  now: number
}

export interface OpeningState {
  service: RegisteredService | undefined
  /** Whose service it is; undefined for the built-in one. */
  organization: OrganizationRow | undefined
  session: GateSessionRow | undefined
}

/**
 * A signup that waits for consent. 404 unless the service takes signups and its organization is active. No event when
 * the session is there already: the command is repeated.
 */
export function decideOpening({ session, ...state }: OpeningState, command: OpenSignup): Decision[] {
  if (session) return []
  const { id: service_id, organization_id, environment } = serviceForSignup(state)
  const { gateSessionId, spec, pollTokenHash, now } = command
  const data: GateSessionOpened = {
    gate_session_id: gateSessionId,
    service_id,
    organization_id,
    environment,
    ...spec,
    poll_token_hash: pollTokenHash,
    opened_at: now,
    expires_at: now + sessionTtlMs,
  }
  const opened = { id: gateSessionId, organization_id, environment }
  return [sessionDecision(opened, { event: { type: 'GateSessionOpened', data }, now })]
}

function serviceForSignup({ service, organization }: Omit<OpeningState, 'session'>): RegisteredService {
  const isOwnerActive = service?.organization_id === null || organization?.status === 'active'
  return requireOpenService(isOwnerActive ? service : undefined)
}

/**
 * The session while a person may be asked about it: 404 without it, 410 when its time is over. 409 when it is resolved,
 * with how: of the field `status` approved, declined, closed or integrator_failed, of `kind` signup or login.
 */
export function decidableSession(session: GateSessionRow | undefined, now: number): GateSessionRow {
  const ending = session && endingOf(session)
  if (!ending) return pendingSession(session, now)
  const fields = [
    { name: 'status', issue: ending },
    { name: 'kind', issue: session.kind },
  ]
  throw new ApiError('gate.session_already_resolved', { details: { fields } })
}

function endingOf({ status, rejection }: GateSessionRow): string | null {
  return status === 'approved' ? status : status === 'rejected' ? rejection : null
}

/** How long a closed page may take to be opened again, in milliseconds: a reload closes it, too. */
export const reloadMs = 3000

/**
 * The person declines; no event when the session is rejected already. ApiError: 404 no such session, 410 its time is
 * over, 409 it is approved, or its approval has started.
 */
export function decideDecline(session: GateSessionRow | undefined, { now }: { now: number }): Decision[] {
  return isRejected(session) ? [] : [rejected(undecided(session, now), { reason: 'declined', now })]
}

/** Whether there is nothing left to decline. ApiError as for `declineSession`. */
export function checkDeclinable(
  session: GateSessionRow | undefined,
  { now }: { now: number },
): GateSessionRow {
  return isRejected(session) ? foundSession(session) : undecided(session, now)
}

interface PageState {
  session: GateSessionRow | undefined
  /** For how many milliseconds its page has been closing; null while it is open. */
  closingForMs: number | null
}

/** Rejects a session whose page was closed and not opened again. No event when nothing of that is so any more. */
export function decideClosedPage({ session, closingForMs }: PageState, { now }: { now: number }): Decision[] {
  if (session?.status !== 'pending' || session.approval_started_at !== null) return []
  // What has expired meanwhile ends as that.
  if (closingForMs === null || closingForMs < reloadMs || session.expires_at <= now) return []
  return [rejected(session, { reason: 'closed', now })]
}

const isRejected = (session: GateSessionRow | undefined) => session?.status === 'rejected'

function undecided(session: GateSessionRow | undefined, now: number): GateSessionRow {
  const pending = pendingSession(session, now)
  if (pending.approval_started_at === null) return pending
  throw new ApiError('gate.approval_in_progress', { headers: { 'retry-after': '1' } })
}

function rejected(
  session: GateSessionRow,
  { reason, now }: { reason: 'declined' | 'closed'; now: number },
): Decision {
  const data = { gate_session_id: session.id, reason, problem: null, rejected_at: now }
  return sessionDecision(session, { event: { type: 'GateSessionRejected', data }, now })
}

interface AcknowledgementState {
  session: GateSessionRow | undefined
  /** Whether the ack token that was sent is the delivery's. */
  isAckToken: boolean
}

interface AcknowledgeDelivery {
  /** Of this request and its repetitions. */
  acknowledgementId: string
  /** Epoch milliseconds. */
  now: number
}

/**
 * Ends the delivery of a signup: whoever polls has read it; no event when this very request has. ApiError: 404 no such
 * session, 410 its time was over before anyone approved, 403 not its ack token, 410 the delivery has ended.
 */
export function decideAcknowledgement(
  { session, isAckToken }: AcknowledgementState,
  { acknowledgementId, now }: AcknowledgeDelivery,
): Decision[] {
  const found = foundSession(session)
  if (found.status === 'expired') throw new ApiError('gate.session_expired')
  if (!isAckToken) throw new ApiError('gate.delivery_ack_invalid')
  if (found.delivery_acknowledgement_id === acknowledgementId) return []
  if (!isWaiting(found, now)) throw new ApiError('gate.delivery_consumed')
  const data = { gate_session_id: found.id, acknowledgement_id: acknowledgementId, acknowledged_at: now }
  return [sessionDecision(found, { event: { type: 'GateDeliveryAcknowledged', data }, now })]
}

/** Whether credentials can be picked up. */
export function isWaiting({ delivery, delivery_expires_at }: GateSessionRow, now: number): boolean {
  return delivery === 'waiting' && delivery_expires_at !== null && delivery_expires_at > now
}

interface At {
  /** Epoch milliseconds. */
  now: number
}

/** Ends a session that nobody decided about in time. No event otherwise: an approval that has started ends it itself. */
export function decideSessionExpiry(session: GateSessionRow | undefined, { now }: At): Decision[] {
  if (session?.status !== 'pending' || session.approval_started_at !== null || session.expires_at > now)
    return []
  const data = { gate_session_id: session.id, expired_at: now }
  return [sessionDecision(session, { event: { type: 'GateSessionExpired', data }, now })]
}

/** Ends a delivery that nobody acknowledged in time. */
export function decideDeliveryExpiry(session: GateSessionRow | undefined, { now }: At): Decision[] {
  if (session?.delivery !== 'waiting' || !isOver(session.delivery_expires_at, now)) return []
  const data = { gate_session_id: session.id, expired_at: now }
  return [sessionDecision(session, { event: { type: 'GateDeliveryExpired', data }, now })]
}

/** Ends a login code that nobody used in time. */
export function decideCodeExpiry(session: GateSessionRow | undefined, { now }: At): Decision[] {
  if (session?.code !== 'issued' || !isOver(session.code_expires_at, now)) return []
  const data = { gate_session_id: session.id, expired_at: now }
  return [sessionDecision(session, { event: { type: 'LoginCodeExpired', data }, now })]
}

const isOver = (time: number | null, now: number) => time !== null && time <= now
