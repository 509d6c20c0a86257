import { sourceOf } from '../../../infra/access/source-budget.ts'
import { isToken, type Token, tokenHashes } from '../../../infra/crypto/tokens.ts'
import { ApiError } from '../../../infra/errors/errors.ts'
import type { Command } from '../../../infra/idempotency/idempotency.ts'
import { consentUrl } from '../../../infra/wire/gate.ts'
import type { GateSessionRow } from '../../../projections/gate/tables.ts'
import type { GateContext } from '../context.ts'
import { findPage, type PageRow } from '../serving/pages.ts'
import { pendingSession } from '../session-state.ts'
import { checkProof, openProof, type Proof } from './proof.ts'
import { checkToken, hasDecided } from './start-approval.ts'

/** A request to approve a signup or login. */
export interface ApproveRequest {
  session: GateSessionRow
  /** As sent; undefined where the member is missing. */
  approveToken: string | undefined
  sealedToken: string | undefined
  proofSessionId: string | undefined
  ip: string
}

/** A request that is fit to be decided about. */
export interface Approving {
  session: GateSessionRow
  token: Token<'gtapr'>
  proof: Proof
  command: Command
}

/**
 * The token when the approval has happened or started and the request is from its page: then it asks what came of it,
 * which is not another attempt and needs no proof.
 */
export async function asksForOutcome(
  { pool, keyring }: GateContext,
  { session, approveToken: token }: ApproveRequest,
): Promise<Token<'gtapr'> | undefined> {
  if (session.approve_token_hash === null || !isApproveToken(token)) return undefined
  const hashes = tokenHashes(keyring, token)
  if (hasDecided(session, hashes)) return token
  return isNewest(await findPage(pool, session.id), hashes) ? token : undefined
}

function isNewest(page: PageRow | undefined, hashes: string[]): boolean {
  return page !== undefined && hashes.includes(page.approve_token_hash)
}

function isApproveToken(token: string | undefined): token is Token<'gtapr'> {
  return token !== undefined && isToken('gtapr', token)
}

/** Counts the request as an attempt. ApiError: 429 the source's fourth at the session. */
export async function countAttempt({ limits }: GateContext, { session, ip }: ApproveRequest): Promise<void> {
  await limits.take('approve', sourceOf(ip), session.id)
}

/**
 * Checks all of the request before anything is decided. ApiError: 410 or 409 the session is not pending, 403 not the
 * newest token of its page, 422 no proof, 403 a proof that is invalid or of a bot. A refusal leaves session and token
 * as they are.
 */
export async function checkedApproval(
  context: GateContext,
  request: ApproveRequest,
): Promise<Omit<Approving, 'command'>> {
  const { pool, keyring, clock } = context
  const { session, approveToken: token } = request
  pendingSession(session, clock())
  if (!isApproveToken(token)) throw new ApiError('gate.approve_token_invalid')
  checkToken(await findPage(pool, session.id), tokenHashes(keyring, token))
  return { session, token, proof: await checkedProof(context, request) }
}

async function checkedProof(
  { consentKeys, publicUrl, clock }: GateContext,
  { session, sealedToken, proofSessionId }: ApproveRequest,
): Promise<Proof> {
  if (!sealedToken) throw new ApiError('gate.svc_proof_required')
  const claims = openProof(sealedToken, await consentKeys.secretHashes())
  const url = consentUrl(publicUrl, session.id)
  return checkProof(claims, { url, sessionId: proofSessionId, now: clock() })
}
