import { type DecidedEvent, decidedEvent } from '../../../infra/event-store/decide.ts'
import { derivedId } from '../../../infra/ids.ts'
import type { GateSessionRow } from '../../../projections/gate/tables.ts'
import { isWaiting } from '../sessions.ts'
import type { SignupCredentials, StartedSession } from './decide.ts'

export type DeliveringSession = StartedSession & { delivery_sealed: Buffer; delivery_expires_at: number }

/** An approved signup whose credentials nobody has acknowledged, in their time. */
export function isDelivering(session: GateSessionRow | undefined, now: number): session is DeliveringSession {
  return session?.kind === 'signup' && session.delivery_sealed !== null && isWaiting(session, now)
}

interface ReplaceDelivery {
  // The bundle that nobody can open any more.
  lost: Buffer
  credentials: SignupCredentials
}

/** No event when the delivery has ended, or was replaced before. Its time stays the same. */
export function decideDeliveryReplacement(
  session: GateSessionRow | undefined,
  { lost, credentials }: ReplaceDelivery,
): DecidedEvent[] {
  const { approved_at: now, delivery_expires_at: _, ...delivered } = credentials
  if (!isDelivering(session, now) || !session.delivery_sealed.equals(lost)) return []
  const { id, gate_account_id, organization_id: organizationId, environment } = session
  const data = { gate_session_id: id, gate_account_id, ...delivered, replaced_at: now }
  const eventId = derivedId('evt', id, 'delivery_replaced', delivered.ack_token_hash)
  const about = { organizationId, environment, eventId, now }
  return [decidedEvent({ type: 'GateDeliveryReplaced', data }, about)]
}
