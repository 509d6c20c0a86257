import type { Part } from '../../../infra/postgres/arrays.ts'
import { ddlOf, type Migrations } from '../../../infra/postgres/migrations.ts'
import { queryAll, type Tx } from '../../../infra/postgres/pool.ts'
import {
  column,
  nullable,
  primaryKey,
  replacing,
  table,
  writeRows,
} from '../../../infra/postgres/table.ts'
import type { AttestedDevice, SessionScored } from '../../../schemas/events.ts'

/** What scoring remembers of an app on a device. Decisions have all of it, so that it can be made again of them. */
export interface KnownDevice extends AttestedDevice {
  organization_id: string
  /** Whose attestation was the last one. */
  session_id: string
}

export const attestedDevices = table<KnownDevice>(
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

// As the index of visitors has them.
const lockBuckets = 2048

/**
 * What is known of the devices, under locks in one fixed order. Of two processes that count the same device at once, the
 * second waits, and then finds what the first has written.
 */
export async function lockDevices(tx: Tx, ids: string[]): Promise<Map<string, KnownDevice>> {
  const [, rows = []] = await queryAll<KnownDevice>(
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

export function saveDevices(rows: KnownDevice[]): Part[] {
  const { columns } = attestedDevices
  const conflict = replacing(attestedDevices)
  return writeRows(attestedDevices, { as: 'save_devices', columns, rows, ordered: true, conflict })
}

/** The device as the decision counted it. */
export function deviceIn({
  attestation,
  organization_id,
  session_id,
}: SessionScored): KnownDevice | undefined {
  return attestation?.device ? { ...attestation.device, organization_id, session_id } : undefined
}
