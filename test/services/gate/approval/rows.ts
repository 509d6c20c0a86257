import type { GateSessionRow } from '../../../../projections/gate/rows.ts'
import type { Proof } from '../../../../services/gate/approval/proof.ts'
import type { PageRow } from '../../../../services/gate/pages.ts'

const zeros = '0'.repeat(26)
const later = '1'.repeat(26)
const minute = 60_000

export const opened = Date.UTC(2026, 10, 21)

/** A signup that nobody has decided about. */
export function pendingSignup(changes: Partial<GateSessionRow> = {}): GateSessionRow {
  return {
    id: `gate_${zeros}`,
    kind: 'signup',
    service_id: 'acme',
    organization_id: `org_${zeros}`,
    environment: 'live',
    account_name: 'Agent Smith',
    metadata: null,
    delivery_key_id: 'key-id',
    delivery_public_key: 'public-key',
    poll_token_hash: 'poll-hash',
    requested_ip: null,
    requested_user_agent: null,
    opened_at: opened,
    expires_at: opened + 15 * minute,
    status: 'pending',
    resolved_at: null,
    rejection: null,
    problem: null,
    gate_account_id: null,
    webhook_endpoint_id: null,
    approval_started_at: null,
    approve_token_hash: null,
    verdict: null,
    risk_score: null,
    delivery: null,
    delivery_sealed: null,
    delivery_expires_at: null,
    ack_token_hash: null,
    code: null,
    code_hash: null,
    code_expires_at: null,
    code_consumption_id: null,
    ...changes,
  }
}

/** One that a person approved and whose service has not answered. */
export function startedSignup(changes: Partial<GateSessionRow> = {}): GateSessionRow {
  return pendingSignup({
    gate_account_id: `gacct_${zeros}`,
    webhook_endpoint_id: `we_${'0'.repeat(32)}`,
    approval_started_at: opened + minute,
    approve_token_hash: 'first',
    verdict: 'human',
    risk_score: 12,
    ...changes,
  })
}

export const pageWith = (approve_token_hash: string): PageRow => ({
  approve_token_hash,
  issued_at: opened,
  closed_at: null,
})

export const proof: Proof = {
  verdict: 'human',
  riskScore: 12,
  sessionId: `sid_${later}`,
  decisionId: `evt_${later}`,
}
