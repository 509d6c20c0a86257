import type { Decision } from '../../../infra/event-store/decide.ts'
import type { GateSessionRow } from '../../../projections/gate/tables.ts'
import { sessionDecision } from './session-decision.ts'

interface At {
  /** Epoch milliseconds. */
  now: number
}

/** Ends a session that nobody decided about in time. No event otherwise: an approval that has started ends it itself. */
export function expireSession(session: GateSessionRow | undefined, { now }: At): Decision[] {
  if (session?.status !== 'pending' || session.approval_started_at !== null || session.expires_at > now)
    return []
  const data = { gate_session_id: session.id, expired_at: now }
  return [sessionDecision(session, { event: { type: 'GateSessionExpired', data }, now })]
}

/** Ends a delivery that nobody acknowledged in time. */
export function expireDelivery(session: GateSessionRow | undefined, { now }: At): Decision[] {
  if (session?.delivery !== 'waiting' || !isOver(session.delivery_expires_at, now)) return []
  const data = { gate_session_id: session.id, expired_at: now }
  return [sessionDecision(session, { event: { type: 'GateDeliveryExpired', data }, now })]
}

/** Ends a login code that nobody used in time. */
export function expireCode(session: GateSessionRow | undefined, { now }: At): Decision[] {
  if (session?.code !== 'issued' || !isOver(session.code_expires_at, now)) return []
  const data = { gate_session_id: session.id, expired_at: now }
  return [sessionDecision(session, { event: { type: 'LoginCodeExpired', data }, now })]
}

const isOver = (time: number | null, now: number) => time !== null && time <= now
