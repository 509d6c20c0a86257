import { ApiError } from '../../../infra/errors/errors.ts'
import type { Decision } from '../../../infra/event-store/decide.ts'
import type { GateSessionRow } from '../../../projections/gate/tables.ts'
import { foundSession } from '../session-state.ts'
import { sessionDecision } from './session-decision.ts'

export interface DeliveryState {
  session: GateSessionRow | undefined
  /** Whether the ack token that was sent is the delivery's. */
  isAckToken: boolean
}

export interface AcknowledgeDelivery {
  /** Of this request and its repetitions. */
  acknowledgementId: string
  /** Epoch milliseconds. */
  now: number
}

/**
 * Ends the delivery of a signup: whoever polls has read it; no event when this very request has. ApiError: 404 no such
 * session, 410 its time was over before anyone approved, 403 not its ack token, 410 the delivery has ended.
 */
export function acknowledgeDelivery(
  { session, isAckToken }: DeliveryState,
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
