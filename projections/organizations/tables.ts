/**
 * Times are epoch milliseconds; lists are JSON text, null where the kind of key has none. The slug's index is not
 * unique: the lock that the command takes keeps slugs apart, and a projection must take whatever the log says.
 */
export const ddl = `
  create table organizations (
    organization_id text collate "C" primary key,
    name text not null,
    slug text collate "C" not null,
    status text not null,
    secret_limit bigint,
    publishable_limit bigint,
    capabilities text not null,
    created_at bigint not null,
    updated_at bigint not null
  );
  create table api_keys (
    key_id text collate "C" primary key,
    organization_id text collate "C" not null,
    type text not null,
    environment text not null,
    name text not null,
    client_target text not null,
    allowed_origins text,
    scopes text,
    lookup_hash text collate "C" not null,
    secret_hash_sealed bytea,
    key_preview text not null,
    display_key text,
    replaces_key_id text collate "C",
    status text not null,
    created_at bigint not null,
    rotated_at bigint,
    revoked_at bigint,
    grace_expires_at bigint
  );
  create table applied_events (event_id text collate "C" primary key);
`

export const indexes = `
  create index on organizations (slug);
  create index on api_keys (lookup_hash);
  create index on api_keys (organization_id, created_at, key_id);
  create index on api_keys (grace_expires_at) where status = 'rotating';
`

/** What readers see as views. */
export const tables = ['organizations', 'api_keys', 'applied_events']
