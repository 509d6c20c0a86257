import type { z } from 'zod'
import { sourceOf } from '../../../infra/access/source.ts'
import { isToken, type Token, tokenHashes } from '../../../infra/crypto/tokens.ts'
import { ApiError, invalidField } from '../../../infra/errors/errors.ts'
import { randomId } from '../../../infra/ids.ts'
import { consentUrl } from '../../../infra/wire/gate.ts'
import { findGateSession } from '../../../projections/gate/queries.ts'
import type { GateSessionRow } from '../../../projections/gate/tables.ts'
import { deriveClaimCode, findClaimCode, formatClaimCode } from '../claim/code.ts'
import type { GateContext, GateDeps, GateParts } from '../context.ts'
import { receiptUrl } from '../erasure/receipt.ts'
import { requireRegisteredService } from '../registry/registered-services.ts'
import { requesterNetwork } from '../requests.ts'
import { type Proof, phaseOf, requirePending, sessionStream } from '../sessions.ts'
import { isApproveTokenOf } from '../store.ts'
import { decideApprovalStart, isApprovedWithToken } from './decide.ts'
import { checkProof, openProof, requireMinimumVerdict } from './proof.ts'
import type { approveBody } from './schemas.ts'

export const approveParameterSet = 'gate_session_approve'

type ApproveBody = z.output<typeof approveBody>

interface ApproveRequest {
  session: GateSessionRow
  body: ApproveBody
  ip: string
}

export interface CheckedApproval {
  session: GateSessionRow
  token: Token<'gtapr'>
  proof: Proof
  isSameNetwork: boolean | null
  acceptedEnvVars: string[]
}

/**
 * Returns the approve token if a person has already approved and the token belongs to one of the session's pages. Such
 * a request only gets the outcome: it does not count as an attempt and needs no proof.
 */
export async function findOutcomeToken(
  { pool, keyring }: GateParts,
  session: GateSessionRow,
  { approve_token: token }: ApproveBody,
): Promise<Token<'gtapr'> | undefined> {
  if (session.approve_token_hash === null || !isApproveToken(token)) return undefined
  const hashes = tokenHashes(keyring, token)
  if (isApprovedWithToken(session, hashes)) return token
  return (await isApproveTokenOf(pool, session.id, hashes)) ? token : undefined
}

function isApproveToken(token: string | undefined): token is Token<'gtapr'> {
  return token !== undefined && isToken('gtapr', token)
}

/**
 * Validates the approval and counts the attempt. Throws:
 * - 422 if the account name is required (the verdict is not human) and missing or wrong; not counted as an attempt
 * - 429 for the fourth attempt of an IP address
 * - 410 or 409 if the session is not pending
 * - 403 if the approve token was not issued to a page of the session
 * - 422 if the proof is missing; 403 if it is invalid, of a bot, or below the service's minimum verdict
 */
export async function admitApproval(
  gate: GateParts,
  request: ApproveRequest,
): Promise<CheckedApproval> {
  // `allSettled`, because an invalid approval counts as an attempt, too.
  const [checked] = await Promise.allSettled([checkedApproval(gate, request)])
  if (checked.status === 'fulfilled' && !hasConfirmedName(checked.value, request.body)) {
    const expected = 'the name of the account, as the page shows it'
    const field = { name: 'account_name', issue: 'required', expected }
    throw invalidField(field, { parameter_set: approveParameterSet }, 'gate.validation_failed')
  }
  await gate.limits.enforce('approve', sourceOf(request.ip), request.session.id)
  if (checked.status === 'rejected') throw checked.reason
  return checked.value
}

// Unless the verdict is human, the person has to type the account name.
function hasConfirmedName({ proof, session }: CheckedApproval, body: ApproveBody): boolean {
  const typedName = normalized(body.account_name ?? '')
  return proof.verdict === 'human' || typedName === normalized(session.account_name)
}

function normalized(name: string): string {
  return name.normalize('NFKC').replaceAll(/\s+/g, ' ').trim().toLowerCase()
}

async function checkedApproval(gate: GateParts, request: ApproveRequest): Promise<CheckedApproval> {
  const { pool, keyring, clock, publicUrl } = gate
  const { session, body, ip } = request
  const { approve_token: token, accepted_env_vars: acceptedEnvVars = [] } = body
  requirePending(session, clock())
  const isValid =
    isApproveToken(token) && (await isApproveTokenOf(pool, session.id, tokenHashes(keyring, token)))
  if (!isValid) throw new ApiError('gate.approve_token_invalid')
  const proof = await checkedProof(gate, request, token)
  const service = await requireRegisteredService(pool, { serviceId: session.service_id, publicUrl })
  requireMinimumVerdict(proof, service.definition)
  const { same: isSameNetwork } = requesterNetwork(gate, session.requested_ip, ip)
  return { session, token, proof, acceptedEnvVars, isSameNetwork }
}

async function checkedProof(
  { consentKeys, publicUrl, clock }: GateParts,
  { session, body: { sealed_token, session_id: sessionId } }: ApproveRequest,
  approveToken: string,
): Promise<Proof> {
  if (!sealed_token) throw new ApiError('gate.svc_proof_required')
  const claims = openProof(sealed_token, await consentKeys.secretHashes())
  const url = consentUrl(publicUrl, session.id)
  return checkProof(claims, { url, approveToken, sessionId, now: clock() })
}

/** Starts the approval, or requests a claim first. Throws as `decideApprovalStart`, and 503 without the service. */
export async function startSignupApproval(
  { decide, keyring, clock, publicUrl, random }: GateDeps,
  { session: { id, service_id: serviceId }, token, ...approval }: CheckedApproval,
): Promise<void> {
  const gateAccountId = randomId('gacct', random)
  const now = clock()
  await decide({
    ...sessionStream(id),
    load: async (tx) => {
      const { definition } = await requireRegisteredService(tx, { serviceId, publicUrl })
      const { webhook_endpoint_id: endpointId, claim_required: isClaimRequired } = definition
      return { session: await findGateSession(tx, id), endpointId, isClaimRequired }
    },
    decide: (state) =>
      decideApprovalStart(state, {
        ...approval,
        approveTokenHashes: tokenHashes(keyring, token),
        gateAccountId,
        claimCodeHash: deriveClaimCode({ keyring, gateSessionId: id, approveToken: token }).hash,
        now,
      }),
  })
}

// Time that a request waits for the outcome before the page has to send another one.
const outcomeWaitMs = 4000

/**
 * Waits up to 4 seconds for the outcome of an approved signup and returns the response; if a claim is needed, returns
 * the claim code to the page that approved. Throws 409 if the service has not responded or the signup was rejected.
 * `snapshot` can be stale.
 */
export async function waitForSignupOutcome(
  { approvals, keyring, publicUrl }: GateContext,
  snapshot: GateSessionRow,
  approveToken: Token<'gtapr'>,
) {
  const { id, claim_code_hash } = snapshot
  if (phaseOf(snapshot) === 'claiming') {
    const code = findClaimCode({ keyring, gateSessionId: id, approveToken }, claim_code_hash)
    const claim_code = code === undefined ? {} : { claim_code: formatClaimCode(code) }
    return { object: 'gate_session', id, status: 'pending', ...claim_code } as const
  }
  const isPending = snapshot.status === 'pending'
  if (isPending) approvals.startIfIdle(id)
  const session = isPending ? await approvals.waitForOutcome(id, outcomeWaitMs) : snapshot
  if (session?.status === 'approved') {
    // Only for the page that approved, because anyone with the link can erase the personal data.
    const isApprover = isApprovedWithToken(session, tokenHashes(keyring, approveToken))
    const receipt = isApprover ? { receipt_url: receiptUrl({ keyring, publicUrl }, id) } : {}
    return { object: 'gate_session', id, status: 'approved', ...receipt } as const
  }
  if (session?.status !== 'rejected')
    throw new ApiError('gate.approval_in_progress', { headers: { 'retry-after': '1' } })
  const message = 'The service could not provide the account, so the signup was rejected.'
  throw new ApiError('gate.session_already_resolved', { message })
}
