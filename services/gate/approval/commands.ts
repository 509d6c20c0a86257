import type { z } from 'zod'
import { sourceOf } from '../../../infra/access/source.ts'
import { isToken, type Token, tokenHashes } from '../../../infra/crypto/tokens.ts'
import { ApiError, invalidField } from '../../../infra/errors/errors.ts'
import { randomId } from '../../../infra/ids.ts'
import { consentUrl } from '../../../infra/wire/gate.ts'
import { findGateSession } from '../../../projections/gate/queries.ts'
import type { GateSessionRow } from '../../../projections/gate/tables.ts'
import { claimCodeOf, newClaimCode, spacedCode } from '../claim/code.ts'
import type { GateContext, GateDeps, GateParts } from '../context.ts'
import { receiptUrl } from '../erasure/receipt.ts'
import { serviceOf } from '../registry/registered.ts'
import { requesterNetwork } from '../requests.ts'
import { type Proof, pendingSession, phaseOf, sessionStream } from '../sessions.ts'
import { isApproveTokenOf } from '../store.ts'
import { decideApprovalStart, hasApproved } from './decide.ts'
import { checkProof, openProof, refuseVerdict } from './proof.ts'
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
 * The token when its page requests the outcome of an approval that has started. That is no attempt and needs no
 * proof.
 */
export async function outcomeToken(
  { pool, keyring }: GateParts,
  session: GateSessionRow,
  { approve_token: token }: ApproveBody,
): Promise<Token<'gtapr'> | undefined> {
  if (session.approve_token_hash === null || !isApproveToken(token)) return undefined
  const hashes = tokenHashes(keyring, token)
  if (hasApproved(session, hashes)) return token
  return (await isApproveTokenOf(pool, session.id, hashes)) ? token : undefined
}

function isApproveToken(token: string | undefined): token is Token<'gtapr'> {
  return token !== undefined && isToken('gtapr', token)
}

/**
 * Counts the attempt, unless it lacks the account's name: 422 where the verdict is not human. ApiError: 429 the fourth
 * attempt of this source at the session, 410 or 409 the session is not pending, 403 not a token of its page. For the
 * proof: 422 none, 403 one that is invalid, of a bot, or of too low a verdict. A refusal changes nothing else.
 */
export async function countedApproval(
  gate: GateParts,
  request: ApproveRequest,
): Promise<CheckedApproval> {
  const [checked] = await Promise.allSettled([checkedApproval(gate, request)])
  if (checked.status === 'fulfilled' && !isNamed(checked.value, request.body)) {
    const expected = 'the name of the account, as the page shows it'
    const field = { name: 'account_name', issue: 'required', expected }
    throw invalidField(field, { parameter_set: approveParameterSet }, 'gate.validation_failed')
  }
  await gate.limits.count('approve', sourceOf(request.ip), request.session.id)
  if (checked.status === 'rejected') throw checked.reason
  return checked.value
}

// Where a program may use the browser, a person has to type the name.
function isNamed({ proof, session }: CheckedApproval, { account_name = '' }: ApproveBody): boolean {
  return proof.verdict === 'human' || comparable(account_name) === comparable(session.account_name)
}

function comparable(name: string): string {
  return name.normalize('NFKC').replaceAll(/\s+/g, ' ').trim().toLowerCase()
}

async function checkedApproval(gate: GateParts, request: ApproveRequest): Promise<CheckedApproval> {
  const { pool, keyring, clock, publicUrl } = gate
  const { session, body, ip } = request
  const { approve_token: token, accepted_env_vars: acceptedEnvVars = [] } = body
  pendingSession(session, clock())
  const isOfPage =
    isApproveToken(token) && (await isApproveTokenOf(pool, session.id, tokenHashes(keyring, token)))
  if (!isOfPage) throw new ApiError('gate.approve_token_invalid')
  const proof = await checkedProof(gate, request, token)
  const service = await serviceOf(pool, { serviceId: session.service_id, publicUrl })
  refuseVerdict(proof, service.definition)
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

/** ApiError as `decideApprovalStart`; 503 when the service cannot be read. */
export async function startSignupApproval(
  { decide, keyring, clock, publicUrl, random }: GateDeps,
  { session: { id, service_id: serviceId }, token, ...approval }: CheckedApproval,
): Promise<void> {
  const gateAccountId = randomId('gacct', random)
  const now = clock()
  await decide({
    ...sessionStream(id),
    load: async (tx) => {
      // 503 where the service cannot be read: not to know whom to ask must not end the signup.
      const { definition } = await serviceOf(tx, { serviceId, publicUrl })
      const { webhook_endpoint_id: endpointId, claim_required: isClaimRequired } = definition
      return { session: await findGateSession(tx, id), endpointId, isClaimRequired }
    },
    decide: (state) =>
      decideApprovalStart(state, {
        ...approval,
        approveTokenHashes: tokenHashes(keyring, token),
        gateAccountId,
        claimCodeHash: newClaimCode({ keyring, gateSessionId: id, approveToken: token }).hash,
        now,
      }),
  })
}

// How long a request waits for the service's answer. Then the page sends another.
const patienceMs = 4000

/**
 * ApiError 409 while the service has not answered, and when the signup was rejected. While the agent has to claim it,
 * the page that approved gets the code, and no other. `known` may be stale once it has started.
 */
export async function signupOutcome(
  { approvals, keyring, publicUrl }: GateContext,
  known: GateSessionRow,
  approveToken: Token<'gtapr'>,
) {
  const { id } = known
  if (phaseOf(known) === 'claiming') {
    const code = claimCodeOf({ keyring, gateSessionId: id, approveToken }, known.claim_code_hash)
    const claim_code = code === undefined ? {} : { claim_code: spacedCode(code) }
    return { object: 'gate_session', id, status: 'pending', ...claim_code } as const
  }
  if (known.status === 'pending') approvals.run(id)
  const session = known.status === 'pending' ? await approvals.outcome(id, patienceMs) : known
  if (session?.status === 'approved') {
    // No other page gets the link, because whoever has it can have the approval forgotten.
    const isOurs = hasApproved(session, tokenHashes(keyring, approveToken))
    const receipt = isOurs ? { receipt_url: receiptUrl({ keyring, publicUrl }, id) } : {}
    return { object: 'gate_session', id, status: 'approved', ...receipt } as const
  }
  if (session?.status !== 'rejected')
    throw new ApiError('gate.approval_in_progress', { headers: { 'retry-after': '1' } })
  const message = 'The service could not provide the account, so the signup was rejected.'
  throw new ApiError('gate.session_already_resolved', { message })
}
