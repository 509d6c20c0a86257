/** Times are epoch milliseconds; lists and objects are JSON text, since a jsonb column refuses \u0000. */
export const ddl = `
  create table gate_services (
    service_id text collate "C" primary key,
    organization_id text collate "C" not null,
    environment text not null,
    status text not null,
    verified boolean not null,
    discoverable boolean not null,
    webhook_endpoint_id text collate "C",
    definition text not null,
    definition_md5 text not null generated always as (md5(definition)) stored,
    created_at bigint not null,
    updated_at bigint not null
  );
  create table gate_sessions (
    gate_session_id text collate "C" primary key,
    kind text not null,
    service_id text collate "C" not null,
    organization_id text collate "C",
    environment text not null,
    account_name text not null,
    metadata text,
    delivery_key_id text,
    delivery_public_key text,
    poll_token_hash text,
    requested_ip text,
    requested_user_agent text,
    opened_at bigint not null,
    expires_at bigint not null,
    status text not null,
    resolved_at bigint,
    rejection text,
    problem text,
    gate_account_id text,
    webhook_endpoint_id text,
    approval_started_at bigint,
    approve_token_hash text,
    verdict text,
    risk_score integer,
    delivery text,
    delivery_sealed bytea,
    delivery_expires_at bigint,
    ack_token_hash text,
    delivery_acknowledgement_id text,
    code text,
    code_hash text,
    code_expires_at bigint,
    code_consumption_id text
  );
  create table gate_agent_tokens (
    gate_account_id text collate "C" primary key,
    gate_session_id text collate "C" not null,
    service_id text collate "C" not null,
    organization_id text collate "C",
    environment text not null,
    account_name text not null,
    token_hash text not null,
    status text not null,
    created_at bigint not null,
    expires_at bigint not null
  );
  create table gate_applied_events (event_id text collate "C" primary key);
`

// What falls due is found without reading what is settled, which is nearly all of it.
export const indexes = `
  create index on gate_services (organization_id, environment, created_at, service_id);
  create index on gate_services (service_id) where status = 'active' and discoverable;
  create index on gate_services (replace(service_id, '-', '_'));
  create index on gate_services (webhook_endpoint_id) where status = 'active';
  create index on gate_sessions (expires_at) where status = 'pending' and approval_started_at is null;
  create index on gate_sessions (approval_started_at) where status = 'pending' and approval_started_at is not null;
  create index on gate_sessions (delivery_expires_at) where delivery = 'waiting';
  create index on gate_sessions (code_expires_at) where code = 'issued';
  create index on gate_sessions (code_hash) where code_hash is not null;
  create index on gate_agent_tokens (token_hash);
`

/** What readers see as views. */
export const tables = ['gate_services', 'gate_sessions', 'gate_agent_tokens', 'gate_applied_events']
