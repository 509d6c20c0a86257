import { ApiError } from '../../../infra/errors/errors.ts'
import type { Decision } from '../../../infra/event-store/decide.ts'
import type { AgentTokenRow, GateSessionRow } from '../../../projections/gate/tables.ts'
import type { Environment } from '../../../schemas/events.ts'
import { sessionDecision } from '../signup/session-decision.ts'

export interface CodeState {
  /** The login that the code is of. */
  session: GateSessionRow | undefined
  /** Of the account that would be logged in. */
  token: AgentTokenRow | undefined
}

export interface ConsumeCode {
  organizationId: string
  environment: Environment
  /** Of this request and its repetitions. */
  consumptionId: string
  /** Epoch milliseconds. */
  now: number
}

/**
 * Uses up a login code; no event when this very request has. ApiError: 410 gate.session_already_resolved when another
 * has, else 410 gate.session_expired unless it is of this organization and environment and its time is not over. A code
 * whose account's agent token was revoked counts as expired: who was shut out after a person approved stays out.
 */
export function consumeCode({ session, token }: CodeState, command: ConsumeCode): Decision[] {
  const { organizationId, environment, consumptionId, now } = command
  const isOwn = session?.organization_id === organizationId && session.environment === environment
  if (!isOwn) throw expiredCode()
  if (session.code === 'consumed') {
    if (session.code_consumption_id === consumptionId) return []
    throw usedCode()
  }
  const isOpen = session.code === 'issued' && (session.code_expires_at ?? 0) > now
  if (!isOpen || token?.status !== 'active') throw expiredCode()
  const data = { gate_session_id: session.id, consumption_id: consumptionId, consumed_at: now }
  return [sessionDecision(session, { event: { type: 'LoginCodeConsumed', data }, now })]
}

/** 410 for a code that cannot be used any more, or never could. */
export function expiredCode(): ApiError {
  return new ApiError('gate.session_expired', { message: 'The login code is unknown, or its time is over.' })
}

function usedCode(): ApiError {
  const message = 'The login code was used before.'
  return new ApiError('gate.session_already_resolved', { status: 410, message })
}
