import { storable } from '../../infra/event-store/text.ts'
import type { Db } from '../../infra/postgres/pool.ts'
import { saveRows } from '../../infra/postgres/save-rows.ts'
import type { Column } from '../../infra/postgres/unnest.ts'
import type { EndpointRow, SigningSecretRow } from './rows.ts'

/** An endpoint as stored: its lists are JSON text. */
export type EndpointRecord = Omit<EndpointRow, 'event_types' | 'secrets'> & {
  event_types: string
  secrets: string
}

type StoredSecret = Omit<SigningSecretRow, 'sealed'> & { sealed: string }

/** The columns of an endpoint in the table named `alias`, bigints as numbers; read them with `endpointRow`. */
export const endpointFields = (alias: string) => `${alias}.endpoint_id as id, ${alias}.organization_id,
  ${alias}.environment, ${alias}.name, ${alias}.url, ${alias}.event_types, ${alias}.status,
  ${alias}.disabled_reason, ${alias}.flagged_reason, ${alias}.secrets, ${alias}.created_at::float8, ${alias}.updated_at::float8,
  ${alias}.target_since::float8`

export function endpointRow(record: EndpointRecord): EndpointRow {
  const secrets: StoredSecret[] = JSON.parse(record.secrets)
  return {
    ...record,
    event_types: JSON.parse(record.event_types),
    secrets: secrets.map((secret) => ({ ...secret, sealed: Buffer.from(secret.sealed, 'base64') })),
  }
}

function secretsText(secrets: SigningSecretRow[]): string {
  const stored: StoredSecret[] = secrets.map(({ sealed, created_at, expires_at }) => ({
    sealed: sealed.toString('base64'),
    created_at,
    expires_at,
  }))
  return JSON.stringify(stored)
}

const columns: Column<EndpointRow>[] = [
  { name: 'endpoint_id', type: 'text', of: (row) => row.id },
  { name: 'organization_id', type: 'text', of: (row) => row.organization_id },
  { name: 'environment', type: 'text', of: (row) => row.environment },
  { name: 'name', type: 'text', of: (row) => storable(row.name) },
  { name: 'url', type: 'text', of: (row) => storable(row.url) },
  { name: 'event_types', type: 'text', of: (row) => JSON.stringify(row.event_types) },
  { name: 'status', type: 'text', of: (row) => row.status },
  { name: 'disabled_reason', type: 'text', of: (row) => row.disabled_reason },
  { name: 'flagged_reason', type: 'text', of: (row) => row.flagged_reason },
  { name: 'secrets', type: 'text', of: (row) => secretsText(row.secrets) },
  { name: 'created_at', type: 'bigint', of: (row) => row.created_at },
  { name: 'updated_at', type: 'bigint', of: (row) => row.updated_at },
  { name: 'target_since', type: 'bigint', of: (row) => row.target_since },
]

/** The endpoints that exist among the ids. */
export async function loadEndpoints(db: Db, ids: string[]): Promise<Map<string, EndpointRow>> {
  const { rows } = await db.query<EndpointRecord>(
    `select ${endpointFields('e')} from webhook_endpoints e where endpoint_id = any($1)`,
    [ids],
  )
  return new Map(rows.map((record) => [record.id, endpointRow(record)]))
}

/** Writes endpoints whole. */
export function saveEndpoints(db: Db, rows: EndpointRow[]): Promise<void> {
  return saveRows(db, { table: 'webhook_endpoints', columns, rows })
}
