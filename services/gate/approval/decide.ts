import { z } from 'zod'
import type { DecidedEvent } from '../../../infra/event-store/decide.ts'
import type { GateAccountId } from '../../../infra/ids.ts'
import { parsedJson } from '../../../infra/text.ts'
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
  foundSession,
  type Proof,
  pendingSession,
  phaseOf,
  rejected,
  sessionDecision,
} from '../sessions.ts'

interface ApprovalState {
  session: GateSessionRow | undefined
  /** The service's endpoint now; it stays that of the approval. null = the built-in service. */
  endpointId: string | null
  /** Whether the service demands a claim of every approval. */
  isClaimRequired: boolean
}

interface StartApproval {
  /** Under all master keys, the current first. */
  approveTokenHashes: [string, ...string[]]
  proof: Proof
  acceptedEnvVars?: readonly string[] | undefined
  gateAccountId: GateAccountId
  /** Whether the browser is in the agent's network; null = not known. */
  isSameNetwork: boolean | null
  claimCodeHash: string
  now: number
}

/**
 * Starts a signup's approval, which then ends only by the service's answer or silence, or has the agent claim it first.
 * No event when either has happened. A disabled service changes nothing here, because the request for the account finds
 * that. ApiError: 404 no such session, 410 expired, 409 resolved.
 */
export function decideApprovalStart(state: ApprovalState, command: StartApproval): DecidedEvent[] {
  const { session, endpointId } = state
  if (hasApproved(session, command.approveTokenHashes)) return []
  const pending = pendingSession(session, command.now)
  if (phaseOf(pending) !== 'undecided') return []
  const start = needsClaim(pending, state, command)
    ? claimRequested(pending, command)
    : started(pending, endpointId, command)
  return [start, ...acceptedVariables(pending, command)]
}

// An agent that cannot pass a code on is approved without one.
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

function started(
  session: GateSessionRow,
  endpointId: string | null,
  command: StartApproval,
): DecidedEvent {
  const { now } = command
  const data = { ...approvalOf(session, command), webhook_endpoint_id: endpointId, started_at: now }
  return sessionDecision(session, { type: 'GateSessionApprovalStarted', data }, { now })
}

function claimRequested(session: GateSessionRow, command: StartApproval): DecidedEvent {
  const { claimCodeHash, now } = command
  const data = {
    ...approvalOf(session, command),
    claim_code_hash: claimCodeHash,
    requested_at: now,
  }
  return sessionDecision(session, { type: 'GateSessionClaimRequested', data }, { now })
}

function approvalOf({ id }: GateSessionRow, command: StartApproval) {
  return {
    gate_session_id: id,
    gate_account_id: command.gateAccountId,
    ...approvalMembers(command),
  }
}

// Which variables the person lets into the agent's env file.
function acceptedVariables(
  session: GateSessionRow,
  { acceptedEnvVars = [], gateAccountId: gate_account_id, now }: StartApproval,
): DecidedEvent[] {
  if (acceptedEnvVars.length === 0) return []
  const env_vars = [...new Set(acceptedEnvVars)]
  const data = { gate_session_id: session.id, gate_account_id, env_vars, accepted_at: now }
  return [sessionDecision(session, { type: 'GateVariablesAccepted', data }, { now })]
}

export function hasApproved(session: GateSessionRow | undefined, tokenHashes: string[]): boolean {
  const hash = foundSession(session).approve_token_hash
  return hash !== null && tokenHashes.includes(hash)
}

/** A signup that a person has approved. */
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

/** No event when the session has ended. */
export function decideApproval(
  session: GateSessionRow | undefined,
  credentials: SignupCredentials,
): DecidedEvent[] {
  if (!isStarted(session)) return []
  const { id: gate_session_id, gate_account_id } = session
  const data = { gate_session_id, gate_account_id, ...credentials }
  return [
    sessionDecision(
      session,
      { type: 'GateSessionApproved', data },
      { now: credentials.approved_at },
    ),
  ]
}

export function decideApprovalFailure(
  session: GateSessionRow | undefined,
  { problem, now }: { problem: string; now: number },
): DecidedEvent[] {
  return isStarted(session)
    ? [rejected(session, { reason: 'integrator_failed', problem, now })]
    : []
}

// The service's owner and whoever signed up see the problem, so it quotes nothing of the answer.
type Judgement =
  | { kind: 'accepted'; envelope: DeliveryEnvelope }
  | { kind: 'retry' | 'refuse'; problem: string }

const answerSchema = z.object({ encrypted_delivery: deliveryEnvelopeSchema })
// The 4xx that say "not now": time-out, conflict, too early, too many.
const laterStatuses = [408, 409, 425, 429]

/** Accepts 2xx with an envelope for the delivery key `keyId`. */
export function judgeAnswer({ status, body }: DirectResponse, keyId: string): Judgement {
  if (status >= 200 && status < 300) return readEnvelope(body, keyId)
  const problem = `The service answered with status ${status}.`
  const isFinal = status >= 300 && status < 500 && !laterStatuses.includes(status)
  return { kind: isFinal ? 'refuse' : 'retry', problem }
}

function readEnvelope(body: Buffer, keyId: string): Judgement {
  const json = parsedJson(body.toString('utf8'))
  if (json === undefined) return improper('is not JSON')
  const answer = answerSchema.safeParse(json)
  // The path names members of the schema and no others, so nothing of the answer is quoted.
  if (!answer.success)
    return improper(
      `has no proper ${answer.error.issues[0]?.path.join('.') || 'encrypted_delivery'}`,
    )
  const { encrypted_delivery: envelope } = answer.data
  if (envelope.key_id !== keyId)
    return improper('is sealed to another key than the one in the request')
  if (!isUsablePublicKey(envelope.ephemeral_public_key)) {
    return improper('has an ephemeral_public_key that nothing can be sealed with')
  }
  return { kind: 'accepted', envelope }
}

const improper = (what: string): Judgement => ({
  kind: 'retry',
  problem: `The service's answer ${what}.`,
})
