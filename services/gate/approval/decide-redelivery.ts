import type { DecidedEvent } from '../../../infra/event-store/decide.ts'
import type { GateSessionRow } from '../../../projections/gate/tables.ts'
import { isWaiting, sessionDecision } from '../sessions.ts'
import type { SignupCredentials, StartedSession } from './decide.ts'

/** An approved signup whose credentials nobody has acknowledged, in their time. */
export function isDelivering(
  session: GateSessionRow | undefined,
  now: number,
): session is StartedSession & { delivery_sealed: Buffer; delivery_expires_at: number } {
  return session?.kind === 'signup' && session.delivery_sealed !== null && isWaiting(session, now)
}

/**
 * `lost`: the bundle that nobody can open any more. No event when the delivery has ended, or was replaced before. Its
 * time stays the same.
 */
export function decideDeliveryReplacement(
  session: GateSessionRow | undefined,
  { lost, credentials }: { lost: Buffer; credentials: SignupCredentials },
): DecidedEvent[] {
  const { approved_at: now, delivery_expires_at: _, ...delivered } = credentials
  if (!isDelivering(session, now) || !session.delivery_sealed.equals(lost)) return []
  const { id, gate_account_id } = session
  const data = { gate_session_id: id, gate_account_id, ...delivered, replaced_at: now }
  const name = ['delivery_replaced', delivered.ack_token_hash]
  return [sessionDecision(session, { type: 'GateDeliveryReplaced', data }, { now, name })]
}
