/**
 * Times are epoch milliseconds; lists are JSON text, since a jsonb column refuses \u0000. `log_partition` is where an
 * event's records are: how old rows may get is decided by the newest event of the same partition. `changes` lists the
 * log's event ids of the delivery's skips and redeliveries, null where it had none.
 */
export const ddl = `
  create table webhook_endpoints (
    endpoint_id text collate "C" primary key,
    organization_id text collate "C" not null,
    environment text not null,
    name text not null,
    url text not null,
    event_types text not null,
    status text not null,
    disabled_reason text,
    flagged_reason text,
    secrets text not null,
    created_at bigint not null,
    updated_at bigint not null,
    target_since bigint not null
  );
  create table webhook_events (
    event_id text collate "C" primary key,
    organization_id text collate "C" not null,
    environment text not null,
    type text not null,
    subject_type text not null,
    subject_id text collate "C" not null,
    data text not null,
    created_at bigint not null,
    log_partition integer not null
  );
  create index on webhook_events (log_partition, created_at);
  create table webhook_deliveries (
    delivery_id text collate "C" primary key,
    event_id text collate "C" not null,
    endpoint_id text collate "C" not null,
    organization_id text collate "C" not null,
    environment text not null,
    event_type text not null,
    status text not null,
    attempts integer not null,
    attempts_in_round integer not null,
    next_attempt_at bigint,
    response_status integer,
    response_body text,
    error text,
    created_at bigint not null,
    updated_at bigint not null,
    changes text
  );
  create index on webhook_deliveries (event_id);
  create table webhook_attempts (
    delivery_id text collate "C" not null,
    attempt integer not null,
    endpoint_id text collate "C" not null,
    succeeded boolean not null,
    attempted_at bigint not null,
    primary key (delivery_id, attempt)
  );
  create table webhook_partition_times (
    log_partition integer primary key,
    newest_at bigint not null
  );
  create table webhook_applied_events (event_id text collate "C" primary key);
`

// Endpoints stay for ever once they are disabled: active ones, and the newest, are found without reading all of them.
// Lists of events without a type look into the index once for each type: one index more would cost every insert.
export const indexes = `
  create index on webhook_endpoints (organization_id, (status = 'active'), environment, created_at, endpoint_id);
  create index on webhook_events (organization_id, environment, type, created_at, event_id);
  create index on webhook_deliveries (endpoint_id, event_type, created_at, event_id);
  create index on webhook_deliveries (endpoint_id, next_attempt_at, delivery_id) where next_attempt_at is not null;
  create index on webhook_deliveries (next_attempt_at) where next_attempt_at is not null;
  create index on webhook_deliveries (status, updated_at, delivery_id) where status in ('failed', 'skipped');
  create index on webhook_attempts (endpoint_id, succeeded, attempted_at);
`

/** What readers see as views. */
export const tables = [
  'webhook_endpoints',
  'webhook_events',
  'webhook_deliveries',
  'webhook_attempts',
  'webhook_partition_times',
  'webhook_applied_events',
]
