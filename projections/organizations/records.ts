import { storable } from '../../infra/event-store/text.ts'
import type { Db } from '../../infra/postgres/pool.ts'
import { saveRows } from '../../infra/postgres/save-rows.ts'
import type { Column } from '../../infra/postgres/unnest.ts'
import type { ApiKeyRow, OrganizationRow } from './rows.ts'

/** A key as stored: its lists are JSON text. */
export type ApiKeyRecord = Omit<ApiKeyRow, 'allowed_origins' | 'scopes'> & {
  allowed_origins: string | null
  scopes: string | null
}

/** An organization as stored: its list is JSON text. */
export type OrganizationRecord = Omit<OrganizationRow, 'capabilities'> & { capabilities: string }

/** The columns of an organization in the table named `alias`, bigints as numbers; read them with `organizationRow`. */
export const organizationFields = (alias: string) => `${alias}.organization_id as id, ${alias}.name,
  ${alias}.slug, ${alias}.status, ${alias}.secret_limit::float8, ${alias}.publishable_limit::float8,
  ${alias}.capabilities, ${alias}.created_at::float8, ${alias}.updated_at::float8`

export function organizationRow(record: OrganizationRecord): OrganizationRow {
  return { ...record, capabilities: JSON.parse(record.capabilities) }
}

/** The columns of a key in the table named `alias`; read them with `keyRow`. */
export const keyFields = (alias: string) => `${alias}.key_id as id, ${alias}.organization_id, ${alias}.type,
  ${alias}.environment, ${alias}.name, ${alias}.client_target, ${alias}.allowed_origins, ${alias}.scopes,
  ${alias}.lookup_hash, ${alias}.secret_hash_sealed, ${alias}.key_preview, ${alias}.display_key,
  ${alias}.replaces_key_id, ${alias}.status, ${alias}.created_at::float8, ${alias}.rotated_at::float8,
  ${alias}.revoked_at::float8, ${alias}.grace_expires_at::float8`

export function keyRow(record: ApiKeyRecord): ApiKeyRow {
  const { allowed_origins, scopes } = record
  return { ...record, allowed_origins: list(allowed_origins), scopes: list(scopes) }
}

function list(json: string | null): string[] | null {
  return json === null ? null : JSON.parse(json)
}

const organizationColumns: Column<OrganizationRow>[] = [
  { name: 'organization_id', type: 'text', of: (row) => row.id },
  { name: 'name', type: 'text', of: (row) => storable(row.name) },
  { name: 'slug', type: 'text', of: (row) => row.slug },
  { name: 'status', type: 'text', of: (row) => row.status },
  { name: 'secret_limit', type: 'bigint', of: (row) => row.secret_limit },
  { name: 'publishable_limit', type: 'bigint', of: (row) => row.publishable_limit },
  { name: 'capabilities', type: 'text', of: (row) => JSON.stringify(row.capabilities) },
  { name: 'created_at', type: 'bigint', of: (row) => row.created_at },
  { name: 'updated_at', type: 'bigint', of: (row) => row.updated_at },
]

const keyColumns: Column<ApiKeyRow>[] = [
  { name: 'key_id', type: 'text', of: (row) => row.id },
  { name: 'organization_id', type: 'text', of: (row) => row.organization_id },
  { name: 'type', type: 'text', of: (row) => row.type },
  { name: 'environment', type: 'text', of: (row) => row.environment },
  { name: 'name', type: 'text', of: (row) => storable(row.name) },
  { name: 'client_target', type: 'text', of: (row) => row.client_target },
  {
    name: 'allowed_origins',
    type: 'text',
    of: (row) => row.allowed_origins && JSON.stringify(row.allowed_origins),
  },
  { name: 'scopes', type: 'text', of: (row) => row.scopes && JSON.stringify(row.scopes) },
  { name: 'lookup_hash', type: 'text', of: (row) => row.lookup_hash },
  { name: 'secret_hash_sealed', type: 'bytea', of: (row) => row.secret_hash_sealed },
  { name: 'key_preview', type: 'text', of: (row) => row.key_preview },
  { name: 'display_key', type: 'text', of: (row) => row.display_key },
  { name: 'replaces_key_id', type: 'text', of: (row) => row.replaces_key_id },
  { name: 'status', type: 'text', of: (row) => row.status },
  { name: 'created_at', type: 'bigint', of: (row) => row.created_at },
  { name: 'rotated_at', type: 'bigint', of: (row) => row.rotated_at },
  { name: 'revoked_at', type: 'bigint', of: (row) => row.revoked_at },
  { name: 'grace_expires_at', type: 'bigint', of: (row) => row.grace_expires_at },
]

/** Writes organizations whole. */
export function saveOrganizations(db: Db, rows: OrganizationRow[]): Promise<void> {
  return saveRows(db, { table: 'organizations', columns: organizationColumns, rows })
}

/** Writes keys whole. */
export function saveKeys(db: Db, rows: ApiKeyRow[]): Promise<void> {
  return saveRows(db, { table: 'api_keys', columns: keyColumns, rows })
}
