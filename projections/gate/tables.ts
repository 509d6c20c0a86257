import type { GateAccountId, GateSessionId } from '../../infra/ids.ts'
import {
  column,
  foreign,
  nullable,
  primaryKey,
  type RowOf,
  table,
} from '../../infra/postgres/table.ts'
import type { Environment, GateRejection, GateServiceDefinition } from '../../schemas/events.ts'

/** Times are epoch milliseconds, as in all tables here. */
export const gateServices = table(
  'gate_services',
  {
    id: primaryKey(column.id(), 'service_id'),
    organization_id: column.id(),
    environment: column.text<Environment>(),
    status: column.text<'active' | 'disabled'>(),
    /** The operator vouches for who is behind it. */
    verified: column.boolean(),
    /** The registrable domain of its website, where the service has shown that it holds it. */
    verified_domain: nullable(column.text()),
    /** From the definition, as the next column, for the indexes. */
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

/** A signup, or a login to an account that a signup made. */
export const gateSessions = table('gate_sessions', {
  id: primaryKey(column.id<GateSessionId>(), 'gate_session_id'),
  kind: column.text<'signup' | 'login'>(),
  service_id: column.id(),
  /** Whose service it is; null = the built-in one. */
  organization_id: nullable(column.id()),
  environment: column.text<Environment>(),
  account_name: foreign(column.text()),
  /** JSON object as it was sent; null for none, and of logins. */
  metadata: nullable(foreign(column.text())),
  /** What is delivered is sealed to this key. Only a signup has it, and a poll token. */
  delivery_key_id: nullable(column.text()),
  delivery_public_key: nullable(column.text()),
  poll_token_hash: nullable(column.text()),
  requested_ip: nullable(foreign(column.text())),
  requested_user_agent: nullable(foreign(column.text())),
  opened_at: column.bigint(),
  expires_at: column.bigint(),
  /** Where the browser goes once a login is approved, as the consent page shows it. */
  dashboard_login_url: nullable(foreign(column.text())),
  /** supported: the agent can pass a code on; waiting: a person approved, and the code has not come yet. */
  claim: nullable(column.text<'supported' | 'waiting' | 'claimed'>()),
  claim_code_hash: nullable(column.text()),
  claim_failures: column.integer(),
  confirmation_code: column.text(),
  /** Nothing of it says who requested it any more, and it has ended. */
  is_erased: column.boolean(),
  /** A session is pending for some seconds after its time is over, because its end is an event. */
  status: column.text<'pending' | 'approved' | 'rejected' | 'expired'>(),
  resolved_at: nullable(column.bigint()),
  rejection: nullable(column.text<GateRejection>()),
  problem: nullable(foreign(column.text())),
  gate_account_id: nullable(column.text<GateAccountId>()),
  webhook_endpoint_id: nullable(column.text()),
  /** Set while a person has approved a signup and the service has not answered yet. */
  approval_started_at: nullable(column.bigint()),
  approve_token_hash: nullable(column.text()),
  verdict: nullable(column.text()),
  risk_score: nullable(column.integer()),
  /** sid_... of the consent page that approved. */
  proof_session_id: nullable(column.text()),
  /** Names that the person who approved lets into the agent's env file. */
  accepted_env_vars: nullable(column.json<string[]>()),
  delivery: nullable(column.text<'waiting' | 'acknowledged' | 'expired'>()),
  /** Both envelopes under the vault's data key; null once the delivery has ended. */
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
  account_name: foreign(column.text()),
  token_hash: column.text(),
  status: column.text<'active' | 'revoked'>(),
  created_at: column.bigint(),
  expires_at: column.bigint(),
})
export type AgentTokenRow = RowOf<typeof gateAgentTokens>

export const gateAppliedEvents = table('gate_applied_events', { event_id: primaryKey(column.id()) })

/** What falls due is found without reading what is settled, which is nearly all of it. */
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
  create index on gate_agent_tokens (token_hash);
`
