import { ApiError } from '../../../infra/errors/errors.ts'
import type { DecidedEvent } from '../../../infra/event-store/decide.ts'
import type { DomainEvent } from '../../../infra/event-store/event.ts'
import type { GateSessionRow } from '../../../projections/gate/tables.ts'
import { phaseOf, rejection, requirePending, requireSession, sessionEvent } from '../sessions.ts'

// With six digits, five guesses succeed once in 200,000 signups.
const maxClaimFailures = 5

/**
 * Starts the approval for the correct code, counts a wrong one, and rejects the signup after the fifth. No event if the
 * correct code was sent before. `endpointId`: the service's current endpoint, which the approval then keeps. ApiError:
 * 404 no such session, 410 expired, 409 rejected, 403 before a person approved.
 */
export function decideClaim(
  state: { session: GateSessionRow | undefined; endpointId: string | null; isCorrectCode: boolean },
  { now }: { now: number },
): DecidedEvent[] {
  const { endpointId, isCorrectCode } = state
  const session = requireSession(state.session)
  if (session.status === 'approved' || phaseOf(session) === 'in_progress') return []
  const { id, gate_account_id, claim_failures } = requirePending(session, now)
  if (phaseOf(session) === 'undecided')
    throw new ApiError('gate.claim_code_invalid', { message: notApproved })
  const ids = { gate_session_id: id, gate_account_id: gate_account_id ?? '' }
  if (isCorrectCode) {
    const data = { ...ids, webhook_endpoint_id: endpointId, claimed_at: now }
    return [sessionEvent(session, { type: 'GateSessionClaimed', data }, { now })]
  }
  const failures = claim_failures + 1
  const name = ['claim_failed', String(failures)]
  const data = { ...ids, failed_at: now }
  const failure = sessionEvent(session, { type: 'GateSessionClaimFailed', data }, { now, name })
  if (failures < maxClaimFailures) return [failure]
  return [failure, rejection(session, { reason: 'claim_failed', now })]
}

const notApproved = 'Nobody has approved yet. The consent page shows the code once a person has.'

/** ApiError 403 if the events say that the code was wrong. `earlierFailures`: number of wrong codes before this one. */
export function throwIfWrongCode(events: DomainEvent[], earlierFailures: number): void {
  if (!events.some(({ type }) => type === 'GateSessionClaimFailed')) return
  const left = maxClaimFailures - earlierFailures - 1
  const message =
    left > 0
      ? `The code is not the one that the consent page shows. ${left} more ${left === 1 ? 'try' : 'tries'}.`
      : 'That was the fifth wrong code, so the signup was rejected.'
  throw new ApiError('gate.claim_code_invalid', { message })
}
