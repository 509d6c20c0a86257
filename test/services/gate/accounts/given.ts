import { randomBytes } from 'node:crypto'
import { createKeyring } from '../../../../infra/crypto/keyring.ts'
import type { Decision } from '../../../../infra/decide.ts'
import { ApiError } from '../../../../infra/http/errors.ts'
import { asId } from '../../../../infra/ids.ts'
import type { AgentTokenRow, GateSessionRow } from '../../../../projections/gate/rows.ts'
import type { OrganizationRow } from '../../../../projections/organizations/rows.ts'
import { agentTokenTtlMs, codeTtlMs, sessionTtlMs } from '../../../../services/gate/session-state.ts'

export const now = 1_800_000_000_000
export const day = 24 * 60 * 60 * 1000
export const keyring = createKeyring(randomBytes(32).toString('base64'))
export const organizationId = asId('org', `org_${'1'.repeat(26)}`)
export const scope = { organizationId, environment: 'live' } as const
/** Those who must not see what is of `scope`. */
export const strangers = [
  { organizationId: `org_${'2'.repeat(26)}`, environment: 'live' },
  { organizationId, environment: 'test' },
] as const

export const organization: OrganizationRow = {
  id: organizationId,
  name: 'Acme',
  slug: 'acme',
  status: 'active',
  secret_limit: null,
  publishable_limit: null,
  capabilities: [],
  created_at: 1,
  updated_at: 1,
}

/** A token that was issued just now. */
export const token: AgentTokenRow = {
  gate_account_id: asId('gacct', `gacct_${'3'.repeat(26)}`),
  gate_session_id: asId('gate', `gate_${'4'.repeat(26)}`),
  service_id: 'acme',
  organization_id: organizationId,
  environment: 'live',
  account_name: 'Robin',
  token_hash: 'token',
  status: 'active',
  created_at: now,
  expires_at: now + agentTokenTtlMs,
}

/** A login that waits for consent. */
export const login: GateSessionRow = {
  id: asId('gate', `gate_${'5'.repeat(26)}`),
  kind: 'login',
  service_id: 'acme',
  organization_id: organizationId,
  environment: 'live',
  account_name: token.account_name,
  metadata: null,
  delivery_key_id: null,
  delivery_public_key: null,
  poll_token_hash: null,
  requested_ip: '203.0.113.9',
  requested_user_agent: 'agent',
  opened_at: now,
  expires_at: now + sessionTtlMs,
  status: 'pending',
  resolved_at: null,
  rejection: null,
  problem: null,
  gate_account_id: token.gate_account_id,
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
}

/** The same after a person approved it. */
export const approvedLogin: GateSessionRow = {
  ...login,
  status: 'approved',
  resolved_at: now,
  approve_token_hash: 'approve',
  verdict: 'human',
  risk_score: 7,
  code: 'issued',
  code_hash: 'code',
  code_expires_at: now + codeTtlMs,
}

export const eventsOf = (decisions: Decision[]) => decisions.map(({ event }) => event)

/** The refusal that `decide` ends with; throws when it does not. */
export function refusalOf(decide: () => unknown): { status: number; code: string } {
  try {
    decide()
  } catch (error) {
    if (error instanceof ApiError) return { status: error.status, code: error.code }
    throw error
  }
  throw new Error('it was not refused')
}
