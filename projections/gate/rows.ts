import type { GateAccountId, GateSessionId } from '../../infra/ids.ts'
import type { Environment, GateRejection, GateServiceDefinition } from '../../schemas/events.ts'

/** Times are epoch milliseconds, as in all rows here. */
export interface GateServiceRow {
  id: string
  organization_id: string
  environment: Environment
  status: 'active' | 'disabled'
  /** The operator vouches for who is behind it. */
  verified: boolean
  definition: GateServiceDefinition
  created_at: number
  updated_at: number
}

export type GateSessionStatus = 'pending' | 'approved' | 'rejected' | 'expired'

/** A signup, or a login to an account that a signup made. */
export interface GateSessionRow {
  id: GateSessionId
  kind: 'signup' | 'login'
  service_id: string
  /** Whose service it is; null = the built-in one. */
  organization_id: string | null
  environment: Environment
  account_name: string
  /** JSON object as it was sent; null for none, and of logins. */
  metadata: string | null
  /** Of signups, as the poll token: what is delivered is sealed to this key. */
  delivery_key_id: string | null
  delivery_public_key: string | null
  poll_token_hash: string | null
  requested_ip: string | null
  requested_user_agent: string | null
  opened_at: number
  expires_at: number
  /** A pending session whose time is over is so for some seconds still: its end is an event. */
  status: GateSessionStatus
  resolved_at: number | null
  rejection: GateRejection | null
  problem: string | null
  /** Of a signup: from when its approval started. */
  gate_account_id: GateAccountId | null
  webhook_endpoint_id: string | null
  /** A signup that a person approved and whose service has not answered yet is pending, with this set. */
  approval_started_at: number | null
  /** Of the approve token that decided. */
  approve_token_hash: string | null
  verdict: string | null
  risk_score: number | null
  /** Of an approved signup. */
  delivery: 'waiting' | 'acknowledged' | 'expired' | null
  /** Both envelopes under the vault's data key; null once the delivery has ended. */
  delivery_sealed: Buffer | null
  delivery_expires_at: number | null
  ack_token_hash: string | null
  /** Of the request that acknowledged the delivery. */
  delivery_acknowledgement_id: string | null
  /** Of an approved login. */
  code: 'issued' | 'consumed' | 'expired' | null
  code_hash: string | null
  code_expires_at: number | null
  /** Of the request that used the code. */
  code_consumption_id: string | null
}

export interface AgentTokenRow {
  gate_account_id: GateAccountId
  /** The signup that issued it. */
  gate_session_id: GateSessionId
  service_id: string
  organization_id: string | null
  environment: Environment
  account_name: string
  token_hash: string
  status: 'active' | 'revoked'
  created_at: number
  expires_at: number
}
