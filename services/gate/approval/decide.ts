import { z } from 'zod'
import type { DecidedEvent } from '../../../infra/event-store/decide.ts'
import type { GateAccountId } from '../../../infra/ids.ts'
import { parseJsonOrUndefined } from '../../../infra/text.ts'
import {
  type DeliveryEnvelope,
  deliveryEnvelopeSchema,
  isUsablePublicKey,
} from '../../../infra/wire/delivery-envelope.ts'
import type { DirectResponse } from '../../../infra/wire/webhooks/direct-call.ts'
import type { GateSessionRow } from '../../../projections/gate/tables.ts'
import type { GateSessionApproved } from '../../../schemas/events.ts'
import {
  approvalMembers,
  type Proof,
  phaseOf,
  rejectionEvent,
  requirePending,
  requireSession,
  sessionEvent,
} from '../sessions.ts'

interface ApprovalState {
  session: GateSessionRow | undefined
  /** Endpoint of the service, which the approval keeps even if the service changes it; null = built-in service. */
  endpointId: string | null
  /** True if the service requires a claim for every signup. */
  isClaimRequired: boolean
}

interface StartApproval {
  /** Hashes under all master keys, current first. */
  approveTokenHashes: [string, ...string[]]
  proof: Proof
  acceptedEnvVars?: readonly string[] | undefined
  gateAccountId: GateAccountId
  /** True if the approving browser is in the agent's network; null = unknown. */
  isSameNetwork: boolean | null
  claimCodeHash: string
  now: number
}

/**
 * Starts a signup's approval, or requests a claim first. Returns no event if either happened before. Throws 404 without
 * a session, 410 if it has expired, and 409 if it is resolved.
 */
export function decideApprovalStart(state: ApprovalState, command: StartApproval): DecidedEvent[] {
  const { session, endpointId } = state
  if (isApprovedWithToken(session, command.approveTokenHashes)) return []
  const pending = requirePending(session, command.now)
  if (phaseOf(pending) !== 'undecided') return []
  const start = needsClaim(pending, state, command)
    ? claimRequestedEvent(pending, command)
    : approvalStartedEvent(pending, endpointId, command)
  return [start, ...variablesAcceptedEvents(pending, command)]
}

// Signups by agents that do not support claims are approved without one.
function needsClaim(
  { claim }: GateSessionRow,
  { isClaimRequired }: ApprovalState,
  { proof, isSameNetwork }: StartApproval,
): boolean {
  return (
    claim === 'supported' &&
    (isClaimRequired || isSameNetwork !== true || proof.verdict !== 'human')
  )
}

function approvalStartedEvent(
  session: GateSessionRow,
  endpointId: string | null,
  command: StartApproval,
): DecidedEvent {
  const { now } = command
  const data = { ...approvalOf(session, command), webhook_endpoint_id: endpointId, started_at: now }
  return sessionEvent(session, { type: 'GateSessionApprovalStarted', data }, { now })
}

function claimRequestedEvent(session: GateSessionRow, command: StartApproval): DecidedEvent {
  const { claimCodeHash, now } = command
  const data = {
    ...approvalOf(session, command),
    claim_code_hash: claimCodeHash,
    requested_at: now,
  }
  return sessionEvent(session, { type: 'GateSessionClaimRequested', data }, { now })
}

function approvalOf({ id }: GateSessionRow, command: StartApproval) {
  return {
    gate_session_id: id,
    gate_account_id: command.gateAccountId,
    ...approvalMembers(command),
  }
}

// Records the additional variables that the person allowed in the agent's env file, if any.
function variablesAcceptedEvents(
  session: GateSessionRow,
  { acceptedEnvVars = [], gateAccountId: gate_account_id, now }: StartApproval,
): DecidedEvent[] {
  if (acceptedEnvVars.length === 0) return []
  const env_vars = [...new Set(acceptedEnvVars)]
  const data = { gate_session_id: session.id, gate_account_id, env_vars, accepted_at: now }
  return [sessionEvent(session, { type: 'GateVariablesAccepted', data }, { now })]
}

/** Throws 404 without a session. */
export function isApprovedWithToken(
  session: GateSessionRow | undefined,
  tokenHashes: string[],
): boolean {
  const hash = requireSession(session).approve_token_hash
  return hash !== null && tokenHashes.includes(hash)
}

/** Approved signup whose service has not provided the account yet. */
export type StartedSession = GateSessionRow &
  Record<'approval_started_at' | 'risk_score', number> &
  Record<'approve_token_hash' | 'verdict' | 'delivery_key_id' | 'delivery_public_key', string> & {
    gate_account_id: NonNullable<GateSessionRow['gate_account_id']>
  }

export function isStarted(session: GateSessionRow | undefined): session is StartedSession {
  return (
    session?.kind === 'signup' &&
    session.status === 'pending' &&
    session.approval_started_at !== null
  )
}

export function deliveryKeyOf({ delivery_key_id, delivery_public_key }: StartedSession) {
  return { key_id: delivery_key_id, public_key: delivery_public_key }
}

export type SignupCredentials = Omit<GateSessionApproved, 'gate_session_id' | 'gate_account_id'>

/** Returns no event if the session has ended. */
export function decideApproval(
  session: GateSessionRow | undefined,
  credentials: SignupCredentials,
): DecidedEvent[] {
  if (!isStarted(session)) return []
  const { id: gate_session_id, gate_account_id } = session
  const data = { gate_session_id, gate_account_id, ...credentials }
  return [
    sessionEvent(session, { type: 'GateSessionApproved', data }, { now: credentials.approved_at }),
  ]
}

export function decideApprovalFailure(
  session: GateSessionRow | undefined,
  { problem, now }: { problem: string; now: number },
): DecidedEvent[] {
  return isStarted(session)
    ? [rejectionEvent(session, { reason: 'integrator_failed', problem, now })]
    : []
}

// The service's owner and the agent see `problem`, so it must not quote the response.
type ResponseJudgment =
  | { kind: 'accepted'; envelope: DeliveryEnvelope }
  | { kind: 'retry' | 'refuse'; problem: string }

const responseSchema = z.object({ encrypted_delivery: deliveryEnvelopeSchema })
// Retryable 4xx: timeout, conflict, too early, too many requests.
const retryableStatuses = [408, 409, 425, 429]

/** Accepts a 2xx response whose envelope is sealed to the delivery key `keyId`. Permanent errors are not retried. */
export function judgeResponse({ status, body }: DirectResponse, keyId: string): ResponseJudgment {
  if (status >= 200 && status < 300) return readEnvelope(body, keyId)
  const problem = `The service answered with status ${status}.`
  const isFinal = status >= 300 && status < 500 && !retryableStatuses.includes(status)
  return { kind: isFinal ? 'refuse' : 'retry', problem }
}

function readEnvelope(body: Buffer, keyId: string): ResponseJudgment {
  const json = parseJsonOrUndefined(body.toString('utf8'))
  if (json === undefined) return malformed('is not JSON')
  const parsed = responseSchema.safeParse(json)
  // Quotes nothing from the response: the path consists of names in the schema.
  if (!parsed.success)
    return malformed(
      `has no proper ${parsed.error.issues[0]?.path.join('.') || 'encrypted_delivery'}`,
    )
  const { encrypted_delivery: envelope } = parsed.data
  if (envelope.key_id !== keyId)
    return malformed('is sealed to another key than the one in the request')
  if (!isUsablePublicKey(envelope.ephemeral_public_key)) {
    return malformed('has an ephemeral_public_key that nothing can be sealed with')
  }
  return { kind: 'accepted', envelope }
}

const malformed = (defect: string): ResponseJudgment => ({
  kind: 'retry',
  problem: `The service's answer ${defect}.`,
})
