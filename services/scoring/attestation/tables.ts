import type { Cte } from '../../../infra/postgres/arrays.ts'
import { ddlOf, type Migrations } from '../../../infra/postgres/migrations.ts'
import { queryAll, type Tx } from '../../../infra/postgres/pool.ts'
import {
  column,
  nullable,
  overwrite,
  primaryKey,
  table,
  writeRows,
} from '../../../infra/postgres/table.ts'
import type { AttestedDevice, SessionScored } from '../../../schemas/events.ts'

/** Attestation state of an app on a device. Decisions contain a copy, so this table can be rebuilt from the log. */
export interface StoredDevice extends AttestedDevice {
  organization_id: string
  /** Session with the latest attestation. */
  session_id: string
}

export const attestedDevices = table<StoredDevice>(
  'scoring.attested_devices',
  {
    id: primaryKey(column.id(), 'device_id'),
    organization_id: column.id(),
    session_id: column.id(),
    public_key: nullable(column.text()),
    counter: column.bigint(),
    first_seen_at: column.bigint(),
    last_seen_at: column.bigint(),
    seen_count: column.integer(),
  },
  { indexes: ['(session_id)'] },
)

export const attestationMigrations: Migrations = {
  name: 'attestation',
  schema: 'scoring',
  create: ddlOf(attestedDevices),
}

// For the reason see visitors/visitor-index.ts.
const lockBuckets = 2048

/**
 * Locks the devices in a fixed order, and returns the stored ones by id. If two processes count the same device at
 * once, the second waits, then finds what the first has written.
 */
export async function lockDevices(tx: Tx, ids: string[]): Promise<Map<string, StoredDevice>> {
  const [, rows = []] = await queryAll<StoredDevice>(
    tx,
    { name: 'scoring-lock-devices', text: lockIds, values: [ids] },
    { name: 'scoring-load-devices', text: loadDevices, values: [ids] },
  )
  return new Map(rows.map((row) => [row.id, row]))
}

const lockIds = `select count(pg_advisory_xact_lock(hashtext('tidegate:devices'), bucket))
  from (select distinct hashtext(id) & ${lockBuckets - 1} as bucket from unnest($1::text[]) id order by bucket) ordered`

const loadDevices = `select ${attestedDevices.select('d')} from scoring.attested_devices d
  where d.device_id = any($1::text[])`

export function saveDevices(rows: StoredDevice[]): Cte[] {
  const { columns } = attestedDevices
  const conflict = overwrite(attestedDevices)
  return writeRows(attestedDevices, { as: 'save_devices', columns, rows, ordered: true, conflict })
}

/** Returns the attested device in the decision, or undefined. */
export function attestedDeviceOf({
  attestation,
  organization_id,
  session_id,
}: SessionScored): StoredDevice | undefined {
  return attestation?.device ? { ...attestation.device, organization_id, session_id } : undefined
}
