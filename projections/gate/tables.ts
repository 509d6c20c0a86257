import type { GateAccountId, GateSessionId } from '../../infra/ids.ts'
import {
  column,
  nullable,
  primaryKey,
  type RowOf,
  table,
  untrustedText,
} from '../../infra/postgres/table.ts'
import type { Environment, GateRejection, GateServiceDefinition } from '../../schemas/events.ts'

/** Times are epoch milliseconds in all tables of this file. */
export const gateServices = table(
  'gate_services',
  {
    id: primaryKey(column.id(), 'service_id'),
    organization_id: column.id(),
    environment: column.text<Environment>(),
    status: column.text<'active' | 'disabled'>(),
    /** True if the operator verified the owner's identity. */
    verified: column.boolean(),
    /** Registrable domain of the website; null until the service has proven control of it. */
    verified_domain: nullable(column.text()),
    // Copied from the definition, for indexes.
    discoverable: column.boolean(),
    webhook_endpoint_id: nullable(column.id()),
    definition: column.json<GateServiceDefinition>(),
    created_at: column.bigint(),
    updated_at: column.bigint(),
  },
  {
    generated: {
      after: 'definition',
      ddl: 'definition_md5 text not null generated always as (md5(definition)) stored',
    },
  },
)
export type GateServiceRow = Omit<
  RowOf<typeof gateServices>,
  'discoverable' | 'webhook_endpoint_id'
>

/** Signups, and logins to the accounts that they created. */
export const gateSessions = table('gate_sessions', {
  id: primaryKey(column.id<GateSessionId>(), 'gate_session_id'),
  kind: column.text<'signup' | 'login'>(),
  service_id: column.id(),
  /** Owner of the service; null for the built-in service. */
  organization_id: nullable(column.id()),
  environment: column.text<Environment>(),
  account_name: untrustedText(column.text()),
  /** JSON object as sent; null for logins. */
  metadata: nullable(untrustedText(column.text())),
  // Signups only. Deliveries are sealed to this key.
  delivery_key_id: nullable(column.text()),
  delivery_public_key: nullable(column.text()),
  poll_token_hash: nullable(column.text()),
  requested_ip: nullable(untrustedText(column.text())),
  requested_user_agent: nullable(untrustedText(column.text())),
  opened_at: column.bigint(),
  expires_at: column.bigint(),
  /** URL that the browser opens after a login is approved. */
  dashboard_login_url: nullable(untrustedText(column.text())),
  /** `supported`: the agent can relay a code. `waiting`: a person approved, and the code has not arrived yet. */
  claim: nullable(column.text<'supported' | 'waiting' | 'claimed'>()),
  claim_code_hash: nullable(column.text()),
  claim_failures: column.integer(),
  confirmation_code: column.text(),
  /** True once the personal data is erased. */
  is_erased: column.boolean(),
  /** Stays `pending` for a few seconds after `expires_at`, until the expiry event is applied. */
  status: column.text<'pending' | 'approved' | 'rejected' | 'expired'>(),
  resolved_at: nullable(column.bigint()),
  rejection: nullable(column.text<GateRejection>()),
  problem: nullable(untrustedText(column.text())),
  gate_account_id: nullable(column.text<GateAccountId>()),
  webhook_endpoint_id: nullable(column.text()),
  /** Time when Gate started to request the account: at the approval, or when the agent sent the claim code. */
  approval_started_at: nullable(column.bigint()),
  approve_token_hash: nullable(column.text()),
  verdict: nullable(column.text()),
  risk_score: nullable(column.integer()),
  /** Session (`sid_...`) of the consent page that approved. */
  proof_session_id: nullable(column.text()),
  /** Variable names that the approver allows in the agent's env file. */
  accepted_env_vars: nullable(column.json<string[]>()),
  delivery: nullable(column.text<'waiting' | 'acknowledged' | 'expired'>()),
  /**
   * Envelopes of the service and of Gate, encrypted with a data key in the vault; null once acknowledged or expired.
   */
  delivery_sealed: nullable(column.bytea()),
  delivery_expires_at: nullable(column.bigint()),
  ack_token_hash: nullable(column.text()),
  delivery_acknowledgement_id: nullable(column.text()),
  code: nullable(column.text<'issued' | 'consumed' | 'expired'>()),
  code_hash: nullable(column.text()),
  code_expires_at: nullable(column.bigint()),
  code_consumption_id: nullable(column.text()),
})
export type GateSessionRow = RowOf<typeof gateSessions>

export const gateAgentTokens = table('gate_agent_tokens', {
  gate_account_id: primaryKey(column.id<GateAccountId>()),
  gate_session_id: column.id<GateSessionId>(),
  service_id: column.id(),
  organization_id: nullable(column.id()),
  environment: column.text<Environment>(),
  account_name: untrustedText(column.text()),
  token_hash: column.text(),
  status: column.text<'active' | 'revoked'>(),
  created_at: column.bigint(),
  expires_at: column.bigint(),
})
export type AgentTokenRow = RowOf<typeof gateAgentTokens>

export const gateAppliedEvents = table('gate_applied_events', { event_id: primaryKey(column.id()) })

// Most partial indexes skip the settled rows, which are nearly all.
export const gateReadIndexes = `
  create index on gate_services (organization_id, environment, created_at, service_id);
  create index on gate_services (service_id) where status = 'active' and discoverable;
  create index on gate_services (regexp_replace(service_id, '[-_]+', '_', 'g'));
  create index on gate_services (webhook_endpoint_id) where status = 'active';
  create index on gate_sessions (expires_at) where status = 'pending' and approval_started_at is null;
  create index on gate_sessions (approval_started_at) where status = 'pending' and approval_started_at is not null;
  create index on gate_sessions (delivery_expires_at) where delivery = 'waiting';
  create index on gate_sessions (code_expires_at) where code = 'issued';
  create index on gate_sessions (code_hash) where code_hash is not null;
  create index on gate_sessions (gate_account_id) where gate_account_id is not null;
  create index on gate_sessions (expires_at) where not is_erased;
  create index on gate_sessions (organization_id, environment, opened_at) where kind = 'signup';
  create index on gate_sessions (organization_id, environment, resolved_at, gate_account_id)
    where kind = 'signup' and status = 'approved';
  create index on gate_agent_tokens (token_hash);
`
