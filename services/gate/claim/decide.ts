import { ApiError } from '../../../infra/errors/errors.ts'
import type { DecidedEvent } from '../../../infra/event-store/decide.ts'
import type { DomainEvent } from '../../../infra/event-store/event.ts'
import type { GateSessionRow } from '../../../projections/gate/tables.ts'
import {
  phaseOf,
  rejectionEvent,
  requirePending,
  requireSession,
  sessionEvent,
} from '../sessions.ts'

// With six digits, five guesses succeed once in 200,000 signups.
const maxClaimFailures = 5

/**
 * Claims the approved signup if the code is correct, records a failure if it is wrong, and rejects the signup after the
 * fifth failure. Returns no event if the correct code was sent before. `endpointId`: the service's webhook endpoint,
 * recorded now, so that later changes to the service don't affect this approval. Throws 404 if there is no session, 410
 * if it has expired, 409 if it is rejected, and 403 if no person has approved yet.
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
  const idParts = ['claim_failed', String(failures)]
  const data = { ...ids, failed_at: now }
  const failure = sessionEvent(session, { type: 'GateSessionClaimFailed', data }, { now, idParts })
  if (failures < maxClaimFailures) return [failure]
  return [failure, rejectionEvent(session, { reason: 'claim_failed', now })]
}

const notApproved = 'Nobody has approved yet. The consent page shows the code once a person has.'

/** Throws 403 if the events record a wrong code. `earlierFailures`: number of wrong codes before this one. */
export function throwIfWrongCode(events: DomainEvent[], earlierFailures: number): void {
  if (!events.some(({ type }) => type === 'GateSessionClaimFailed')) return
  const left = maxClaimFailures - earlierFailures - 1
  const message =
    left > 0
      ? `The code does not match the one on the consent page. ${left} more ${left === 1 ? 'try' : 'tries'}.`
      : 'That was the fifth wrong code, so the signup was rejected.'
  throw new ApiError('gate.claim_code_invalid', { message })
}
