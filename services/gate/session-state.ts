import { ApiError } from '../../infra/errors/errors.ts'
import type { GateSessionRow } from '../../projections/gate/tables.ts'

/** How long a person has to decide about a signup or login. */
export const sessionTtlMs = 15 * 60 * 1000
/** How long credentials wait for whoever signed up. */
export const deliveryTtlMs = 24 * 60 * 60 * 1000
/** How long a login code may be used. */
export const codeTtlMs = 5 * 60 * 1000
/** How long an agent token is good for after it was issued or last used. */
export const agentTokenTtlMs = 90 * 24 * 60 * 60 * 1000

/** The session; 404 without it. */
export function foundSession(session: GateSessionRow | undefined): GateSessionRow {
  if (!session) throw new ApiError('gate.session_not_found')
  return session
}

/**
 * The session while a decision about it is possible: 404 without it, 410 when its time is over, 409 when it is
 * resolved. A signup whose approval has started is pending, too; see `approval_started_at`.
 */
export function pendingSession(session: GateSessionRow | undefined, now: number): GateSessionRow {
  const { status, expires_at } = foundSession(session)
  if (status === 'expired') throw new ApiError('gate.session_expired')
  if (status !== 'pending') throw new ApiError('gate.session_already_resolved')
  // Once it has started, the approval ends it: an answer that arrives late still counts.
  if (expires_at <= now && session?.approval_started_at == null) throw new ApiError('gate.session_expired')
  return foundSession(session)
}
