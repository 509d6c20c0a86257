import {
  column,
  nullable,
  primaryKey,
  type RowOf,
  table,
  untrustedText,
} from '../../infra/postgres/table.ts'
import type { ClientTarget, Environment, KeyType, RevocationReason } from '../../schemas/events.ts'

export type OrganizationStatus = 'active' | 'suspended' | 'deleted'

/** Times are epoch milliseconds. */
export const organizations = table('organizations', {
  id: primaryKey(column.id(), 'organization_id'),
  name: untrustedText(column.text()),
  slug: column.id(),
  status: column.text<OrganizationStatus>(),
  /** Rate limit shared by all secret keys, in units per 60 seconds; null = the server's default. */
  secret_limit: nullable(column.bigint()),
  publishable_limit: nullable(column.bigint()),
  /** Maximum lifetime of new keys in days; null = unlimited. */
  max_key_days: nullable(column.bigint()),
  /** Enabled features that are off by default. */
  capabilities: column.json<readonly string[]>(),
  created_at: column.bigint(),
  updated_at: column.bigint(),
})
export type OrganizationRow = RowOf<typeof organizations>

export const apiKeys = table('api_keys', {
  id: primaryKey(column.id(), 'key_id'),
  organization_id: column.id(),
  type: column.text<KeyType>(),
  environment: column.text<Environment>(),
  name: untrustedText(column.text()),
  client_target: column.text<ClientTarget>(),
  /** null for secret keys. */
  allowed_origins: nullable(column.json<string[]>()),
  /** null for publishable keys. */
  scopes: nullable(column.json<string[]>()),
  lookup_hash: column.id(),
  secret_hash_sealed: nullable(column.bytea()),
  key_preview: column.text(),
  display_key: nullable(column.text()),
  replaces_key_id: nullable(column.id()),
  status: column.text<'active' | 'rotating' | 'revoked'>(),
  created_at: column.bigint(),
  rotated_at: nullable(column.bigint()),
  revoked_at: nullable(column.bigint()),
  /** null unless revoked. */
  revoked_reason: nullable(column.text<RevocationReason>()),
  /** Time when a rotated key stops working. */
  grace_expires_at: nullable(column.bigint()),
  /** null = the key doesn't expire. */
  expires_at: nullable(column.bigint()),
})
export type ApiKeyRow = RowOf<typeof apiKeys>

export const appliedEvents = table('applied_events', { event_id: primaryKey(column.id()) })

// The index on slugs is not unique, because a projection must not reject an event. The command that creates an
// organization keeps slugs unique.
export const organizationReadIndexes = `
  create index on organizations (slug);
  create index on api_keys (lookup_hash);
  create index on api_keys (organization_id, created_at, key_id);
  create index on api_keys (least(grace_expires_at, expires_at)) where status <> 'revoked';
  create index on api_keys (expires_at) where status <> 'revoked';
`
