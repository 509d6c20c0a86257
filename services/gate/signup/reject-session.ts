import { ApiError } from '../../../infra/errors/errors.ts'
import type { Decision } from '../../../infra/event-store/decide.ts'
import type { GateSessionRow } from '../../../projections/gate/tables.ts'
import { foundSession, pendingSession } from '../session-state.ts'
import { sessionDecision } from './session-decision.ts'

/** How long a closed page may take to be opened again, in milliseconds: a reload closes it, too. */
export const reloadMs = 3000

/**
 * The person declines; no event when the session is rejected already. ApiError: 404 no such session, 410 its time is
 * over, 409 it is approved, or its approval has started.
 */
export function declineSession(session: GateSessionRow | undefined, { now }: { now: number }): Decision[] {
  return isRejected(session) ? [] : [rejected(undecided(session, now), { reason: 'declined', now })]
}

/** Whether there is nothing left to decline. ApiError as for `declineSession`. */
export function checkDeclinable(
  session: GateSessionRow | undefined,
  { now }: { now: number },
): GateSessionRow {
  return isRejected(session) ? foundSession(session) : undecided(session, now)
}

export interface PageState {
  session: GateSessionRow | undefined
  /** For how many milliseconds its page has been closing; null while it is open. */
  closingForMs: number | null
}

/** Rejects a session whose page was closed and not opened again. No event when nothing of that is so any more. */
export function rejectClosed({ session, closingForMs }: PageState, { now }: { now: number }): Decision[] {
  if (session?.status !== 'pending' || session.approval_started_at !== null) return []
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
): Decision {
  const data = { gate_session_id: session.id, reason, problem: null, rejected_at: now }
  return sessionDecision(session, { event: { type: 'GateSessionRejected', data }, now })
}
