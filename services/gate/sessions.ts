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
/** Starts when the token is issued, and again when it is used. */
export const agentTokenTtlMs = 90 * 24 * 60 * 60 * 1000

/** Actor of decisions on the consent page. A fixed id, because anyone with the link can decide. */
export const consentingPerson = { type: 'person', id: 'consent-page' } as const

/** Returns the requesting agent, identified by its delivery key (signups) or its account (logins). */
export function agentOf({ delivery_key_id, gate_account_id }: GateSessionRow): Actor {
  return { type: 'agent', id: delivery_key_id ?? gate_account_id ?? 'unknown' }
}

/** Throws 404 `gate.session_not_found` without a session. */
export function requireSession(session: GateSessionRow | undefined): GateSessionRow {
  if (!session) throw new ApiError('gate.session_not_found')
  return session
}

/**
 * Returns the session if it is pending, including a signup whose approval has started. Throws 404 if there is no
 * session, 410 if it has expired, and 409 if it is resolved.
 */
export function requirePending(session: GateSessionRow | undefined, now: number): GateSessionRow {
  const pending = requireSession(session)
  if (pending.status === 'expired') throw new ApiError('gate.session_expired')
  if (pending.status !== 'pending') throw new ApiError('gate.session_already_resolved')
  // A started approval outlives `expires_at`, so that a late response of the service still counts.
  if (pending.expires_at <= now && pending.approval_started_at === null)
    throw new ApiError('gate.session_expired')
  return pending
}

/** Returns `claiming` when a person has approved and the agent has yet to send the claim code. */
export function phaseOf({ status, claim, approval_started_at }: GateSessionRow) {
  if (status !== 'pending') return 'ended'
  if (approval_started_at !== null) return 'in_progress'
  return claim === 'waiting' ? 'claiming' : 'undecided'
}

/** Returns true while the agent can fetch its credentials. */
export function hasDelivery(
  { delivery, delivery_expires_at }: GateSessionRow,
  now: number,
): boolean {
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

/** Returns the `alsoReads` entry for a decision that also reads the session or service with the id `key`. */
export function gateEventsOf(key: string) {
  return { projection: 'gate', topic: eventTopics.GateSessionOpened, key }
}

/**
 * Returns an event of the session. The event id is derived from the session and `idParts`, so that a repeated
 * decision makes the same event. They must be unique within a session and never change.
 */
export function sessionEvent(
  session: Pick<GateSessionRow, 'id' | 'organization_id' | 'environment'>,
  event: DomainEvent,
  { now, idParts = [event.type] }: { now: number; idParts?: string[] },
): DecidedEvent {
  return eventAbout(session, event, { eventId: derivedId('evt', session.id, ...idParts), now })
}

/** The agent sees `problem`, so it must not quote the service's response. */
export function rejectionEvent(
  session: GateSessionRow,
  { reason, problem = null, now }: { reason: GateRejection; problem?: string | null; now: number },
): DecidedEvent {
  const data = { gate_session_id: session.id, reason, problem, rejected_at: now }
  return sessionEvent(session, { type: 'GateSessionRejected', data }, { now })
}

/** Scoring decision on the approving browser, from the consent page's own session. */
export interface Proof {
  verdict: 'human' | 'inconclusive'
  riskScore: number
  sessionId: string
  decisionId: string
}

/** Returns the members that all approval events share. */
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
