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

export interface OpeningState {
  service: RegisteredService | undefined
  organization: OrganizationRow | undefined
  session: GateSessionRow | undefined
}

/**
 * No event when the command is repeated. ApiError: 404 unless the service is open and its organization active, 422 where
 * it asks for a claim and the agent cannot.
 */
export function decideOpening({ session, ...state }: OpeningState, command: OpenSignup): DecidedEvent[] {
  if (session) return []
  const { id: service_id, organization_id, environment, definition } = serviceForSignup(state)
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
  return [sessionDecision(opened, { event: { type: 'GateSessionOpened', data }, now })]
}

function unclaimable(): ApiError {
  const expected = 'supported: this service asks for the code that the consent page shows'
  const details = { parameter_set: createParameterSet }
  return invalidField({ name: 'claim', issue: 'required', expected }, details, 'gate.validation_failed')
}

function serviceForSignup({ service, organization }: Omit<OpeningState, 'session'>): RegisteredService {
  const isOwnerActive = service?.organization_id === null || organization?.status === 'active'
  return requireOpenService(isOwnerActive ? service : undefined)
}

/**
 * The session while a person may decide about it. ApiError: 404 without it, 410 when it has expired, 409 when it is
 * resolved. Field `status` then says how: approved, declined, closed, integrator_failed or claim_failed.
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

/** A reload closes the page, too. */
export const reloadMs = 3000

/**
 * No event when the session is rejected. ApiError: 404 no such session, 410 expired, 409 approved or its approval has
 * started.
 */
export function decideDecline(session: GateSessionRow | undefined, { now }: { now: number }): DecidedEvent[] {
  return isRejected(session) ? [] : [rejected(undecided(session, now), { reason: 'declined', now })]
}

export function checkDeclinable(
  session: GateSessionRow | undefined,
  { now }: { now: number },
): GateSessionRow {
  return isRejected(session) ? foundSession(session) : undecided(session, now)
}

interface PageState {
  session: GateSessionRow | undefined
  // null while the page is open.
  closingForMs: number | null
}

/** No event when the page was opened again, or the session has ended. */
export function decideClosedPage(
  { session, closingForMs }: PageState,
  { now }: { now: number },
): DecidedEvent[] {
  // Who has approved may close the page, and tell the code then.
  if (!session || phaseOf(session) !== 'undecided') return []
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
): DecidedEvent {
  const data = { gate_session_id: session.id, reason, problem: null, rejected_at: now }
  return sessionDecision(session, { event: { type: 'GateSessionRejected', data }, now })
}

interface AcknowledgementState {
  session: GateSessionRow | undefined
  isAckToken: boolean
}

interface AcknowledgeDelivery {
  acknowledgementId: string
  now: number
}

/**
 * No event when this very request has acknowledged it. ApiError: 404 no such session, 410 expired before an approval,
 * 403 not its ack token, 410 the delivery has ended.
 */
export function decideAcknowledgement(
  { session, isAckToken }: AcknowledgementState,
  { acknowledgementId, now }: AcknowledgeDelivery,
): DecidedEvent[] {
  const found = foundSession(session)
  if (found.status === 'expired') throw new ApiError('gate.session_expired')
  if (!isAckToken) throw new ApiError('gate.delivery_ack_invalid')
  if (found.delivery_acknowledgement_id === acknowledgementId) return []
  requireDelivery(found, now)
  const data = { gate_session_id: found.id, acknowledgement_id: acknowledgementId, acknowledged_at: now }
  return [sessionDecision(found, { event: { type: 'GateDeliveryAcknowledged', data }, now })]
}

/** ApiError 410, saying why, unless credentials wait for their agent. */
export function requireDelivery(session: GateSessionRow, now: number): void {
  if (isWaiting(session, now)) return
  if (session.delivery === 'acknowledged') throw new ApiError('gate.delivery_consumed')
  throw new ApiError('gate.delivery_consumed', { message: notAcknowledged })
}

const notAcknowledged =
  'Nobody acknowledged the credentials within 24 hours, or they were lost in a failure and the service did not give them out again.'

interface At {
  now: number
}

/** No event once an approval has started: it ends the session itself. */
export function decideSessionExpiry(session: GateSessionRow | undefined, { now }: At): DecidedEvent[] {
  if (session?.status !== 'pending' || session.approval_started_at !== null || session.expires_at > now)
    return []
  const data = { gate_session_id: session.id, expired_at: now }
  return [sessionDecision(session, { event: { type: 'GateSessionExpired', data }, now })]
}

export function decideDeliveryExpiry(session: GateSessionRow | undefined, { now }: At): DecidedEvent[] {
  if (session?.delivery !== 'waiting' || !isOver(session.delivery_expires_at, now)) return []
  const data = { gate_session_id: session.id, expired_at: now }
  return [sessionDecision(session, { event: { type: 'GateDeliveryExpired', data }, now })]
}

export function decideCodeExpiry(session: GateSessionRow | undefined, { now }: At): DecidedEvent[] {
  if (session?.code !== 'issued' || !isOver(session.code_expires_at, now)) return []
  const data = { gate_session_id: session.id, expired_at: now }
  return [sessionDecision(session, { event: { type: 'LoginCodeExpired', data }, now })]
}

const isOver = (time: number | null, now: number) => time !== null && time <= now
