import { ApiError } from '../../../infra/errors/errors.ts'
import type { DomainEvent } from '../../../infra/event-store/codec.ts'
import { type DecidedEvent, decidedEvent } from '../../../infra/event-store/decide.ts'
import { derivedId } from '../../../infra/ids.ts'
import type { GateSessionRow } from '../../../projections/gate/tables.ts'
import { foundSession, pendingSession, phaseOf, sessionDecision } from '../sessions.ts'

/** Of six digits, so that one in 200,000 who only guess gets through. */
export const maxClaimFailures = 5

interface ClaimState {
  session: GateSessionRow | undefined
  // The service's endpoint now; it stays that of the approval. null = the built-in service.
  endpointId: string | null
  isCode: boolean
}

/**
 * The right code starts the approval, a wrong one is counted, and the last of those rejects the signup. No event once
 * the right one was told. ApiError: 404 no such session, 410 expired, 409 rejected, 403 while nobody has approved.
 */
export function decideClaim(
  { session, endpointId, isCode }: ClaimState,
  { now }: { now: number },
): DecidedEvent[] {
  const found = foundSession(session)
  const phase = phaseOf(found)
  switch (phase) {
    case 'undecided':
      pendingSession(found, now)
      throw new ApiError('gate.claim_code_invalid', { message: notDue })
    case 'claiming':
      pendingSession(found, now)
      return isCode ? [claimed(found, { endpointId, now })] : failed(found, now)
    case 'in_progress':
      return []
    case 'ended':
      if (found.status !== 'approved') pendingSession(found, now)
      return []
    default:
      return phase satisfies never
  }
}

const notDue = 'Nobody has approved yet. The consent page shows the code once a person has.'

interface Claim {
  endpointId: string | null
  now: number
}

function claimed(session: GateSessionRow, { endpointId, now }: Claim): DecidedEvent {
  const data = { ...namesOf(session), webhook_endpoint_id: endpointId, claimed_at: now }
  return sessionDecision(session, { event: { type: 'GateSessionClaimed', data }, now })
}

function failed(session: GateSessionRow, now: number): DecidedEvent[] {
  const failures = session.claim_failures + 1
  const data = { ...namesOf(session), failed_at: now }
  const about = {
    ...tenantOf(session),
    eventId: derivedId('evt', session.id, 'claim_failed', String(failures)),
  }
  const failure = decidedEvent({ type: 'GateSessionClaimFailed', data }, { ...about, now })
  return failures < maxClaimFailures ? [failure] : [failure, rejected(session, now)]
}

function rejected(session: GateSessionRow, now: number): DecidedEvent {
  const reason = 'claim_failed' as const
  const data = { gate_session_id: session.id, reason, problem: null, rejected_at: now }
  return sessionDecision(session, { event: { type: 'GateSessionRejected', data }, now })
}

const namesOf = ({ id, gate_account_id }: GateSessionRow) => ({
  gate_session_id: id,
  gate_account_id: gate_account_id ?? '',
})

const tenantOf = ({ organization_id: organizationId, environment }: GateSessionRow) => ({
  organizationId,
  environment,
})

/** ApiError 403 where the decision was that the code is wrong. */
export function refuseWrongCode(events: DomainEvent[], before: number): void {
  if (!events.some(({ type }) => type === 'GateSessionClaimFailed')) return
  const left = maxClaimFailures - before - 1
  const message =
    left > 0
      ? `The code is not the one that the consent page shows. ${left} more ${left === 1 ? 'try' : 'tries'}.`
      : 'That was the fifth wrong code, so the signup was rejected.'
  throw new ApiError('gate.claim_code_invalid', { message })
}
