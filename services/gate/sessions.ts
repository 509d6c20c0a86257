import { ApiError } from '../../infra/errors/errors.ts'
import { type DecidedEvent, eventAbout } from '../../infra/event-store/decide.ts'
import type { DomainEvent } from '../../infra/event-store/event.ts'
import { derivedId } from '../../infra/ids.ts'
import type { GateSessionRow } from '../../projections/gate/tables.ts'
import { type Actor, eventTopics, type GateRejection } from '../../schemas/events.ts'

export const createParameterSet = 'gate_session_create'

export const sessionTtlMs = 15 * 60 * 1000
export const deliveryTtlMs = 24 * 60 * 60 * 1000
export const codeTtlMs = 5 * 60 * 1000
/** From when the token was issued or last used. */
export const agentTokenTtlMs = 90 * 24 * 60 * 60 * 1000

/** Nobody knows more of this person. The id of a pending session would let others decide about it. */
export const consentingPerson = { type: 'person', id: 'consent-page' } as const

/** Who requested the session: the key that credentials are sealed to, or the account of a login. */
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
  const found = foundSession(session)
  if (found.status === 'expired') throw new ApiError('gate.session_expired')
  if (found.status !== 'pending') throw new ApiError('gate.session_already_resolved')
  // Once an approval has started only its outcome ends the session, so an answer that arrives late still counts.
  if (found.expires_at <= now && found.approval_started_at === null)
    throw new ApiError('gate.session_expired')
  return found
}

/** In `claiming` a person has approved, and the agent has yet to pass the code on. */
export function phaseOf({ status, claim, approval_started_at }: GateSessionRow) {
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

/** `name`: what tells the event from others of the session, so that a repetition of the decision has the same event id. It is part of the id for ever. */
export function sessionDecision(
  session: Pick<GateSessionRow, 'id' | 'organization_id' | 'environment'>,
  event: DomainEvent,
  { now, name = [event.type] }: { now: number; name?: string[] },
): DecidedEvent {
  return eventAbout(session, event, { eventId: derivedId('evt', session.id, ...name), now })
}

/** `problem` is for whoever signed up, and quotes nothing of the service's answer. */
export function rejected(
  session: GateSessionRow,
  { reason, problem = null, now }: { reason: GateRejection; problem?: string | null; now: number },
): DecidedEvent {
  const data = { gate_session_id: session.id, reason, problem, rejected_at: now }
  return sessionDecision(session, { type: 'GateSessionRejected', data }, { now })
}

/** What the scored session of the consent page says of the browser that approves. */
export interface Proof {
  verdict: 'human' | 'inconclusive'
  riskScore: number
  sessionId: string
  decisionId: string
}

/** The members that every event of an approval has: by which token of the page, and with which proof. */
export function approvalMembers(approval: {
  approveTokenHashes: [string, ...string[]]
  proof: Proof
}) {
  const { approveTokenHashes, proof } = approval
  return {
    approve_token_hash: approveTokenHashes[0],
    verdict: proof.verdict,
    risk_score: proof.riskScore,
    proof_session_id: proof.sessionId,
    proof_decision_id: proof.decisionId,
  }
}
