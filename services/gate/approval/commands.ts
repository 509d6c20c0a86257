import { sourceOf } from '../../../infra/access/source.ts'
import { isToken, type Token, tokenHashes } from '../../../infra/crypto/tokens.ts'
import { ApiError } from '../../../infra/errors/errors.ts'
import type { Decide } from '../../../infra/event-store/decide.ts'
import type { Command } from '../../../infra/idempotency/idempotency.ts'
import { type GateSessionId, randomId } from '../../../infra/ids.ts'
import { consentUrl } from '../../../infra/wire/gate.ts'
import { findGateSession } from '../../../projections/gate/queries.ts'
import type { GateSessionRow } from '../../../projections/gate/tables.ts'
import type { Approvals, GateContext } from '../context.ts'
import { serviceOf } from '../registry/registered.ts'
import { pendingSession, sessionStream } from '../sessions.ts'
import { isApproveTokenOf } from '../store.ts'
import { decideApprovalStart, hasApproved } from './decide.ts'
import { checkProof, openProof, type Proof } from './proof.ts'

export interface ApproveRequest {
  session: GateSessionRow
  approveToken: string | undefined
  sealedToken: string | undefined
  proofSessionId: string | undefined
  ip: string
}

export interface CheckedApproval {
  session: GateSessionRow
  token: Token<'gtapr'>
  proof: Proof
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

/** ApiError 429: the fourth attempt of this source at the session. */
export async function countAttempt({ limits }: GateContext, { session, ip }: ApproveRequest): Promise<void> {
  await limits.count('approve', sourceOf(ip), session.id)
}

/**
 * ApiError: 410 or 409 the session is not pending, 403 not a token of its page, 422 no proof, 403 a proof that is
 * invalid or of a bot. A refusal changes nothing.
 */
export async function checkedApproval(
  context: GateContext,
  request: ApproveRequest,
): Promise<Omit<CheckedApproval, 'command'>> {
  const { pool, keyring, clock } = context
  const { session, approveToken: token } = request
  pendingSession(session, clock())
  const isOfPage =
    isApproveToken(token) && (await isApproveTokenOf(pool, session.id, tokenHashes(keyring, token)))
  if (!isOfPage) throw new ApiError('gate.approve_token_invalid')
  return { session, token, proof: await checkedProof(context, { ...request, approveToken: token }) }
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
  { session, token, proof, command }: CheckedApproval,
): Promise<void> {
  const { id, service_id: serviceId } = session
  const hashes = tokenHashes(keyring, token)
  const gateAccountId = randomId('gacct', command.random)
  const now = clock()
  await decide({
    ...sessionStream(id),
    load: async (tx) => ({
      session: await findGateSession(tx, id),
      // Not to know whom to ask must not end the signup: 503.
      endpointId: (await serviceOf(tx, { serviceId, publicUrl })).definition.webhook_endpoint_id,
    }),
    decide: (state) =>
      decideApprovalStart(state, {
        approveTokenHash: hashes[0],
        approveTokenHashes: hashes,
        proof,
        gateAccountId,
        now,
      }),
  })
}

/** ApiError 409 while the service has not answered, and when the signup was rejected. `known` may be stale. */
export async function signupOutcome({ approvals }: GateContext, known: GateSessionRow) {
  const { id } = known
  const session = known.status === 'pending' ? await outcomeSoon(approvals, id) : known
  if (session?.status === 'approved')
    return { object: 'gate_session' as const, id, status: 'approved' as const }
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
