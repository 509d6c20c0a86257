import { ApiError } from '../../infra/errors/errors.ts'
import type { DomainEvent } from '../../infra/event-store/codec.ts'
import { type DecidedEvent, decidedEvent } from '../../infra/event-store/decide.ts'
import { derivedId } from '../../infra/ids.ts'
import type { GateSessionRow } from '../../projections/gate/tables.ts'
import { type Actor, eventTopics } from '../../schemas/events.ts'

export const createParameterSet = 'gate_session_create'

export const sessionTtlMs = 15 * 60 * 1000
export const deliveryTtlMs = 24 * 60 * 60 * 1000
export const codeTtlMs = 5 * 60 * 1000
/** From when the token was issued or last used. */
export const agentTokenTtlMs = 90 * 24 * 60 * 60 * 1000

/** Nobody knows more of this person. The id of a pending session would let others decide about it. */
export const consentingPerson = { type: 'person', id: 'consent-page' } as const

/** Who asked for the session, by the key that credentials are sealed to; for a login by the account. */
export function agentOf({ delivery_key_id, gate_account_id }: GateSessionRow): Actor {
  return { type: 'agent', id: delivery_key_id ?? gate_account_id ?? 'unknown' }
}

export function foundSession(session: GateSessionRow | undefined): GateSessionRow {
  if (!session) throw new ApiError('gate.session_not_found')
  return session
}

/**
 * The session while it can be decided about. ApiError: 404 without it, 410 when it has expired, 409 when it is
 * resolved. A signup whose approval has started is pending, too.
 */
export function pendingSession(session: GateSessionRow | undefined, now: number): GateSessionRow {
  const { status, expires_at } = foundSession(session)
  if (status === 'expired') throw new ApiError('gate.session_expired')
  if (status !== 'pending') throw new ApiError('gate.session_already_resolved')
  // Once it has started, the approval ends it: an answer that arrives late still counts.
  if (expires_at <= now && session?.approval_started_at == null) throw new ApiError('gate.session_expired')
  return foundSession(session)
}

/** How far an approval is. In `claiming` a person has approved, and the agent has yet to tell the code. */
export type ApprovalPhase = 'undecided' | 'claiming' | 'in_progress' | 'ended'

export function phaseOf({ status, claim, approval_started_at }: GateSessionRow): ApprovalPhase {
  if (status !== 'pending') return 'ended'
  if (approval_started_at !== null) return 'in_progress'
  return claim === 'waiting' ? 'claiming' : 'undecided'
}

/** Whether credentials wait for their agent. */
export function isWaiting({ delivery, delivery_expires_at }: GateSessionRow, now: number): boolean {
  return delivery === 'waiting' && delivery_expires_at !== null && delivery_expires_at > now
}

export function sessionStream(gateSessionId: string) {
  return {
    topic: eventTopics.GateSessionOpened,
    projection: 'gate',
    key: gateSessionId,
    locks: [`gate-session:${gateSessionId}`],
  }
}

export function serviceStream(serviceId: string) {
  return {
    topic: eventTopics.GateServiceRegistered,
    projection: 'gate',
    key: serviceId,
    locks: [`gate-service:${serviceId}`],
  }
}

/** For `alsoReads`: the events of another session or service. */
export function seenOf(key: string) {
  return { projection: 'gate', topic: eventTopics.GateSessionOpened, key }
}

type OfSession = Pick<GateSessionRow, 'id' | 'organization_id' | 'environment'>

/** Of an event that a session has once: a repetition has the same event id. */
export function sessionDecision(
  session: OfSession,
  { event, now }: { event: DomainEvent; now: number },
): DecidedEvent {
  const { id, organization_id: organizationId, environment } = session
  return decidedEvent(event, { organizationId, environment, eventId: derivedId('evt', id, event.type), now })
}
