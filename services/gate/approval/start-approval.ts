import { ApiError } from '../../../infra/errors/errors.ts'
import type { Decision } from '../../../infra/event-store/decide.ts'
import { decided } from '../../../infra/event-store/decided.ts'
import { derivedId, type GateAccountId } from '../../../infra/ids.ts'
import type { GateSessionRow } from '../../../projections/gate/tables.ts'
import type { PageRow } from '../serving/pages.ts'
import { foundSession, pendingSession } from '../session-state.ts'
import type { Proof } from './proof.ts'

export interface ApprovalState {
  session: GateSessionRow | undefined
  page: PageRow | undefined
  /** Of the service, now: who is asked stays the same while the approval lasts. null = the built-in service. */
  endpointId: string | null
}

export interface StartApproval {
  /** What the token would be stored under now, and everything that it may be stored under. */
  approveTokenHash: string
  approveTokenHashes: string[]
  proof: Proof
  gateAccountId: GateAccountId
  /** Epoch milliseconds. */
  now: number
}

/**
 * A person's approval of a signup, after which only the service's answer or its silence ends the session. Nothing when
 * it has started and the page asks again. A service that was disabled or hidden, or cannot be asked, changes nothing
 * here: what came of asking is the approval's end. ApiError: 404 no such session, 410 its time is over, 409 it is
 * resolved, 403 not the page's newest token.
 */
export function startApproval(state: ApprovalState, command: StartApproval): Decision[] {
  const { session, page, endpointId } = state
  if (hasDecided(session, command.approveTokenHashes)) return []
  const { id, approval_started_at, organization_id, environment } = pendingSession(session, command.now)
  checkToken(page, command.approveTokenHashes)
  if (approval_started_at !== null) return []
  const { approveTokenHash, proof, gateAccountId, now } = command
  const data = {
    gate_session_id: id,
    gate_account_id: gateAccountId,
    webhook_endpoint_id: endpointId,
    approve_token_hash: approveTokenHash,
    verdict: proof.verdict,
    risk_score: proof.riskScore,
    proof_session_id: proof.sessionId,
    proof_decision_id: proof.decisionId,
    started_at: now,
  }
  const about = { organizationId: organization_id, environment, now }
  const eventId = derivedId('evt', id, 'approval_started')
  return [decided({ type: 'GateSessionApprovalStarted', data }, { ...about, eventId })]
}

/** Whether a token with these hashes has approved the session already. */
export function hasDecided(session: GateSessionRow | undefined, tokenHashes: string[]): boolean {
  const hash = foundSession(session).approve_token_hash
  return hash !== null && tokenHashes.includes(hash)
}

/** ApiError gate.approve_token_invalid unless it is the newest token of the page. */
export function checkToken(page: PageRow | undefined, tokenHashes: string[]): void {
  if (!page || !tokenHashes.includes(page.approve_token_hash))
    throw new ApiError('gate.approve_token_invalid')
}
