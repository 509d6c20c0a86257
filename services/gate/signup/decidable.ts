import { ApiError } from '../../../infra/errors/errors.ts'
import type { GateSessionRow } from '../../../projections/gate/tables.ts'
import { pendingSession } from '../session-state.ts'

/**
 * The session while a person may be asked about it: 404 without it, 410 when its time is over. 409 when it is resolved,
 * with how: of the field `status` approved, declined, closed or integrator_failed, of `kind` signup or login.
 */
export function decidableSession(session: GateSessionRow | undefined, now: number): GateSessionRow {
  const ending = session && endingOf(session)
  if (!ending) return pendingSession(session, now)
  const fields = [
    { name: 'status', issue: ending },
    { name: 'kind', issue: session.kind },
  ]
  throw new ApiError('gate.session_already_resolved', { details: { fields } })
}

function endingOf({ status, rejection }: GateSessionRow): string | null {
  return status === 'approved' ? status : status === 'rejected' ? rejection : null
}
