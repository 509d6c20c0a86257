import { ApiError } from '../../../infra/errors/errors.ts'
import type { DecidedEvent } from '../../../infra/event-store/decide.ts'
import type { DomainEvent } from '../../../infra/event-store/event.ts'
import type { GateSessionRow } from '../../../projections/gate/tables.ts'
import { foundSession, pendingSession, phaseOf, rejected, sessionDecision } from '../sessions.ts'

// With six digits, one in 200,000 who only guess gets through.
const maxClaimFailures = 5

/**
 * The right code starts the approval, a wrong one is counted, and the last of those rejects the signup. No event once
 * the right one has come. `endpointId`: the service's endpoint now, which stays that of the approval. ApiError: 404 no
 * such session, 410 expired, 409 rejected, 403 while nobody has approved.
 */
export function decideClaim(
  state: { session: GateSessionRow | undefined; endpointId: string | null; isCode: boolean },
  { now }: { now: number },
): DecidedEvent[] {
  const { session, endpointId, isCode } = state
  const found = foundSession(session)
  const isResolved = found.status === 'approved' || phaseOf(found) === 'in_progress'
  if (isResolved) return []
  const { id: gate_session_id, gate_account_id, claim_failures } = pendingSession(found, now)
  if (phaseOf(found) === 'undecided')
    throw new ApiError('gate.claim_code_invalid', { message: notDue })
  const claimed = { gate_session_id, gate_account_id: gate_account_id ?? '' }
  if (isCode) {
    const data = { ...claimed, webhook_endpoint_id: endpointId, claimed_at: now }
    return [sessionDecision(found, { type: 'GateSessionClaimed', data }, { now })]
  }
  const failures = claim_failures + 1
  const name = ['claim_failed', String(failures)]
  const data = { ...claimed, failed_at: now }
  const failure = sessionDecision(found, { type: 'GateSessionClaimFailed', data }, { now, name })
  if (failures < maxClaimFailures) return [failure]
  return [failure, rejected(found, { reason: 'claim_failed', now })]
}

const notDue = 'Nobody has approved yet. The consent page shows the code once a person has.'

/** ApiError 403 where the decision was that the code is wrong. `before`: how many were wrong before it. */
export function refuseWrongCode(events: DomainEvent[], before: number): void {
  if (!events.some(({ type }) => type === 'GateSessionClaimFailed')) return
  const left = maxClaimFailures - before - 1
  const message =
    left > 0
      ? `The code is not the one that the consent page shows. ${left} more ${left === 1 ? 'try' : 'tries'}.`
      : 'That was the fifth wrong code, so the signup was rejected.'
  throw new ApiError('gate.claim_code_invalid', { message })
}
