import { sourceOf } from '../../../infra/access/source.ts'
import { isToken, type Token, tokenHashes } from '../../../infra/crypto/tokens.ts'
import { ApiError, invalidField } from '../../../infra/errors/errors.ts'
import type { Decide } from '../../../infra/event-store/decide.ts'
import type { Command } from '../../../infra/idempotency/idempotency.ts'
import { type GateSessionId, randomId } from '../../../infra/ids.ts'
import { consentUrl } from '../../../infra/wire/gate.ts'
import { findGateSession } from '../../../projections/gate/queries.ts'
import type { GateSessionRow } from '../../../projections/gate/tables.ts'
import { newClaimCode, shownClaimCode, spacedCode } from '../claim/code.ts'
import type { Approvals, GateContext } from '../context.ts'
import { receiptUrl } from '../erasure/receipt.ts'
import { serviceOf } from '../registry/registered.ts'
import { requesterNetwork } from '../requests.ts'
import { pendingSession, phaseOf, sessionStream } from '../sessions.ts'
import { isApproveTokenOf } from '../store.ts'
import { decideApprovalStart, hasApproved } from './decide.ts'
import { checkProof, openProof, type Proof, refuseVerdict } from './proof.ts'

export const approveParameterSet = 'gate_session_approve'

export interface ApproveRequest {
  session: GateSessionRow
  approveToken: string | undefined
  sealedToken: string | undefined
  proofSessionId: string | undefined
  accountName: string | undefined
  acceptedEnvVars: string[]
  ip: string
}

export interface CheckedApproval {
  session: GateSessionRow
  token: Token<'gtapr'>
  proof: Proof
  isSameNetwork: boolean | null
  acceptedEnvVars?: string[]
  command: Command
}

/**
 * The token when its page asks for the outcome of an approval that has started. That is no attempt and needs no
 * proof.
 */
export async function outcomeToken(
  { pool, keyring }: GateContext,
  { session, approveToken: token }: ApproveRequest,
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
 * attempt of this source at the session, 410 or 409 the session is not pending, 403 not a token of its page. Of the
 * proof: 422 none, 403 one that is invalid, of a bot, or of too low a verdict. A refusal changes nothing else.
 */
export async function countedApproval(
  context: GateContext,
  request: ApproveRequest,
): Promise<Omit<CheckedApproval, 'command'>> {
  const [checked] = await Promise.allSettled([checkedApproval(context, request)])
  const isUnnamed = checked.status === 'fulfilled' && !isNamed(checked.value, request)
  if (isUnnamed) throw unnamed()
  await context.limits.count('approve', sourceOf(request.ip), request.session.id)
  if (checked.status === 'rejected') throw checked.reason
  return checked.value
}

// A person types it, in a browser that may be a program's.
function isNamed(
  { proof, session }: Pick<CheckedApproval, 'proof' | 'session'>,
  { accountName = '' }: ApproveRequest,
): boolean {
  return proof.verdict === 'human' || comparable(accountName) === comparable(session.account_name)
}

function comparable(name: string): string {
  return name.normalize('NFKC').replaceAll(/\s+/g, ' ').trim().toLowerCase()
}

function unnamed(): ApiError {
  const field = {
    name: 'account_name',
    issue: 'required',
    expected: 'the name of the account, as the page shows it',
  }
  return invalidField(field, { parameter_set: approveParameterSet }, 'gate.validation_failed')
}

async function checkedApproval(
  context: GateContext,
  request: ApproveRequest,
): Promise<Omit<CheckedApproval, 'command'>> {
  const { pool, keyring, clock, publicUrl } = context
  const { session, approveToken: token, acceptedEnvVars, ip: readerIp } = request
  pendingSession(session, clock())
  const isOfPage =
    isApproveToken(token) && (await isApproveTokenOf(pool, session.id, tokenHashes(keyring, token)))
  if (!isOfPage) throw new ApiError('gate.approve_token_invalid')
  const proof = await checkedProof(context, { ...request, approveToken: token })
  const service = await serviceOf(pool, { serviceId: session.service_id, publicUrl })
  refuseVerdict(proof, service.definition)
  const { same } = requesterNetwork({
    requestedIp: session.requested_ip,
    readerIp,
    source: context.network,
    now: clock(),
  })
  return { session, token, proof, acceptedEnvVars, isSameNetwork: same }
}

async function checkedProof(
  { consentKeys, publicUrl, clock }: GateContext,
  { session, approveToken, sealedToken, proofSessionId }: ApproveRequest & { approveToken: string },
): Promise<Proof> {
  if (!sealedToken) throw new ApiError('gate.svc_proof_required')
  const claims = openProof(sealedToken, await consentKeys.secretHashes())
  const url = consentUrl(publicUrl, session.id)
  return checkProof(claims, { url, approveToken, sessionId: proofSessionId, now: clock() })
}

// How long a request waits for the service's answer. Then the page asks again.
const patienceMs = 4000

type StartDeps = Pick<GateContext, 'keyring' | 'clock' | 'publicUrl'> & { decide: Decide }

/** ApiError as of `decideApprovalStart`; 503 when the service cannot be read. */
export async function startSignupApproval(
  { decide, keyring, clock, publicUrl }: StartDeps,
  { session, token, proof, isSameNetwork, acceptedEnvVars, command }: CheckedApproval,
): Promise<void> {
  const { id, service_id: serviceId } = session
  const hashes = tokenHashes(keyring, token)
  const gateAccountId = randomId('gacct', command.random)
  const now = clock()
  await decide({
    ...sessionStream(id),
    load: async (tx) => {
      // Not to know whom to ask must not end the signup: 503.
      const { definition } = await serviceOf(tx, { serviceId, publicUrl })
      const { webhook_endpoint_id: endpointId, claim_required: isClaimRequired } = definition
      return { session: await findGateSession(tx, id), endpointId, isClaimRequired }
    },
    decide: (state) =>
      decideApprovalStart(state, {
        approveTokenHash: hashes[0],
        approveTokenHashes: hashes,
        proof,
        acceptedEnvVars,
        gateAccountId,
        isSameNetwork,
        claimCodeHash: newClaimCode({ keyring, gateSessionId: id, approveToken: token }).hash,
        now,
      }),
  })
}

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
    const code = shownClaimCode({ keyring, gateSessionId: id, approveToken }, known.claim_code_hash)
    const claim_code = code === undefined ? {} : { claim_code: spacedCode(code) }
    return { object: 'gate_session' as const, id, status: 'pending' as const, ...claim_code }
  }
  const session = known.status === 'pending' ? await outcomeSoon(approvals, id) : known
  if (session?.status === 'approved') {
    // Whoever else has the link could have it forgotten, too.
    const isOurs = hasApproved(session, tokenHashes(keyring, approveToken))
    const receipt = isOurs ? { receipt_url: receiptUrl({ keyring, publicUrl }, id) } : {}
    return { object: 'gate_session' as const, id, status: 'approved' as const, ...receipt }
  }
  throw refusalOf(session)
}

function outcomeSoon(approvals: Approvals, id: GateSessionId): Promise<GateSessionRow | undefined> {
  approvals.run(id)
  return approvals.outcome(id, patienceMs)
}

function refusalOf(session: GateSessionRow | undefined): ApiError {
  if (session?.status !== 'rejected') {
    return new ApiError('gate.approval_in_progress', { headers: { 'retry-after': '1' } })
  }
  const message = 'The service could not provide the account, so the signup was rejected.'
  return new ApiError('gate.session_already_resolved', { message })
}
