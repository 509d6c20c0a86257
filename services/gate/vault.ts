import { z } from 'zod'
import type { Keyring } from '../../infra/crypto/keyring.ts'
import {
  createDataKey,
  type DataKey,
  dataKeyBytes,
  open,
  seal,
} from '../../infra/crypto/sealing.ts'
import type { Clock, GateSessionId, Random } from '../../infra/ids.ts'
import type { Db } from '../../infra/postgres/pool.ts'
import { column, primaryKey, table } from '../../infra/postgres/table.ts'
import { deliveryEnvelopeSchema } from '../../infra/wire/delivery-envelope.ts'
import type { GateSessionRow } from '../../projections/gate/tables.ts'

const vault = table(
  'tidegate.gate_vault',
  {
    gate_session_id: primaryKey(column.id()),
    data_key_sealed: column.bytea(),
    created_at: column.bigint(),
  },
  { unlogged: true, indexes: ['(created_at)'] },
)

/**
 * The only copies of the keys that deliveries are sealed under, so to delete one is to delete the delivery, in the log
 * too. The table is unlogged, so nothing of it is in the WAL, in a replica or in a base backup, and a crash of Postgres
 * empties it (ADR 0012). It has no statistics, because those would copy values into a table that is logged.
 */
export const vaultDdl = `${vault.ddl}alter table tidegate.gate_vault alter column data_key_sealed set statistics 0;\n`

export interface StoreOptions {
  pool: Db
  keyring: Keyring
  clock: Clock
  random: Random
}

export type Vault = ReturnType<typeof createVault>

// VACUUM would leave the bytes in the pages, and VACUUM FULL copies what an open transaction could still see. Where the
// lock is not to be had soon, as while pg_dump runs, this fails and is tried again, so that nobody waits long behind it.
const shredding = `
do $$
declare remaining tidegate.gate_vault[];
begin
  if pg_relation_size('tidegate.gate_vault') = 0 then return; end if;
  perform set_config('lock_timeout', '300', true);
  lock table tidegate.gate_vault in access exclusive mode;
  remaining := array(select v from tidegate.gate_vault v);
  truncate tidegate.gate_vault;
  insert into tidegate.gate_vault select * from unnest(remaining);
end $$`

const purpose = 'gate-data-key'

export function createVault({ pool, keyring, clock, random }: StoreOptions) {
  async function find(gateSessionId: GateSessionId): Promise<DataKey | undefined> {
    const { rows } = await pool.query<{ sealed: Buffer }>(
      'select data_key_sealed as sealed from tidegate.gate_vault where gate_session_id = $1',
      [gateSessionId],
    )
    const secret = rows[0] && open(rows[0].sealed, { keyring, purpose, context: gateSessionId })
    return secret && createDataKey(secret)
  }

  return {
    /** undefined once it is deleted, or when no master key opens it. */
    find,
    /** Makes the key where there is none; every caller gets the same, until Postgres crashes. */
    async make(gateSessionId: GateSessionId): Promise<DataKey> {
      const sealed = seal(random(dataKeyBytes), {
        keyring,
        purpose,
        context: gateSessionId,
        random,
      })
      await pool.query(
        'insert into tidegate.gate_vault values ($1, $2, $3) on conflict (gate_session_id) do nothing',
        [gateSessionId, sealed, clock()],
      )
      const key = await find(gateSessionId)
      if (!key) throw new Error(`no master key opens the data key of ${gateSessionId}`)
      return key
    },
    /** The bytes stay in the table's file until the next `shred`. */
    async remove(gateSessionIds: GateSessionId[]): Promise<void> {
      if (gateSessionIds.length === 0) return
      await pool.query('delete from tidegate.gate_vault where gate_session_id = any($1)', [
        gateSessionIds,
      ])
    },
    /** Writes what is left to a new file and gives the old one up, with the bytes of all that was removed. */
    async shred(): Promise<void> {
      await pool.query(shredding)
    },
  }
}

export const bundleSchema = z
  .strictObject({ integrator: deliveryEnvelopeSchema, gate: deliveryEnvelopeSchema })
  .meta({ id: 'GateDeliveryBundle' })
export type DeliveryBundle = z.output<typeof bundleSchema>

/** Sealed as events and read models carry it. Nobody can read it once the data key is deleted. */
export function sealBundle(
  bundle: DeliveryBundle,
  {
    dataKey,
    gateSessionId,
    random,
  }: { dataKey: DataKey; gateSessionId: GateSessionId; random: Random },
): Buffer {
  return dataKey.seal(Buffer.from(JSON.stringify(bundle)), { context: gateSessionId, random })
}

/** What waits for the agent of a signup; undefined when nothing does, or the key to it is gone. */
export async function findBundle(
  vault: Vault,
  { id: gateSessionId, delivery_sealed: sealed }: GateSessionRow,
): Promise<DeliveryBundle | undefined> {
  const dataKey = sealed ? await vault.find(gateSessionId) : undefined
  const text = sealed && dataKey?.open(sealed, { context: gateSessionId })?.toString('utf8')
  return typeof text === 'string' ? bundleSchema.parse(JSON.parse(text)) : undefined
}
