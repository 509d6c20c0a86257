import { ApiError } from '../../../infra/errors/errors.ts'
import type { Decision } from '../../../infra/event-store/decide.ts'
import type { GateSessionRow } from '../../../projections/gate/tables.ts'
import type { PageRow } from '../serving/pages.ts'
import { codeTtlMs, pendingSession } from '../session-state.ts'
import { sessionDecision } from '../signup/session-decision.ts'

export { loginCode, redirectUrl } from './code.ts'

export interface ApproveLogin {
  /** What the token would be stored under now, and everything that it may be stored under. */
  approveTokenHash: string
  approveTokenHashes: string[]
  /** The decision about the browser that approves. */
  proof: { verdict: string; riskScore: number; sessionId: string; decisionId: string }
  /** Of the code that is given out. */
  codeHash: string
  /** Epoch milliseconds. */
  now: number
}

interface ApproveLoginState {
  session: GateSessionRow | undefined
  page: PageRow | undefined
}

/**
 * Approves a login; no event when this very token has, and its code is still to be used. ApiError: 404 no such
 * session, 410 its time or its code's is over, 409 it is resolved or its code was used, 403 not its page's token.
 */
export function approveLogin({ session, page }: ApproveLoginState, command: ApproveLogin): Decision[] {
  if (session && isRepetition(session, command)) return []
  const login = pendingSession(session, command.now)
  const token = page?.approve_token_hash
  if (token === undefined || !command.approveTokenHashes.includes(token)) {
    throw new ApiError('gate.approve_token_invalid')
  }
  return [approved(login, command)]
}

function isRepetition(session: GateSessionRow, { approveTokenHashes, now }: ApproveLogin): boolean {
  const { status, approve_token_hash, code, code_expires_at } = session
  if (status !== 'approved' || approve_token_hash === null) return false
  if (!approveTokenHashes.includes(approve_token_hash) || code === 'consumed') return false
  if (code === 'issued' && (code_expires_at ?? 0) > now) return true
  throw new ApiError('gate.session_expired')
}

function approved(session: GateSessionRow, command: ApproveLogin): Decision {
  const { approveTokenHash, proof, codeHash, now } = command
  const data = {
    gate_session_id: session.id,
    code_hash: codeHash,
    code_expires_at: now + codeTtlMs,
    approve_token_hash: approveTokenHash,
    verdict: proof.verdict,
    risk_score: proof.riskScore,
    proof_session_id: proof.sessionId,
    proof_decision_id: proof.decisionId,
    approved_at: now,
  }
  return sessionDecision(session, { event: { type: 'LoginSessionApproved', data }, now })
}
