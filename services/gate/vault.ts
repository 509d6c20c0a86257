// Crypto-shredding of deliveries (ADR 0012): each delivery is encrypted with its own data key, whose only copy is a row
// of tidegate.gate_vault. Deleting the row makes the delivery unreadable everywhere, including on the log, once backups
// and WAL archives of the row have expired.

import { z } from 'zod'
import type { Keyring } from '../../infra/crypto/keyring.ts'
import {
  createDataKey,
  type DataKey,
  dataKeyBytes,
  open,
  seal,
} from '../../infra/crypto/sealing.ts'
import { unavailable } from '../../infra/errors/errors.ts'
import type { Clock, GateSessionId, Random } from '../../infra/ids.ts'
import type { Db } from '../../infra/postgres/pool.ts'
import { column, primaryKey, table } from '../../infra/postgres/table.ts'
import { deliveryEnvelopeSchema } from '../../infra/wire/delivery-envelope.ts'
import type { GateSessionRow } from '../../projections/gate/tables.ts'

// Lets the next autovacuum run, by default within a minute, remove a deleted key from disk.
const immediateVacuum = 'autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 0'

const vault = table(
  'tidegate.gate_vault',
  {
    gate_session_id: primaryKey(column.id()),
    data_key_sealed: column.bytea(),
    created_at: column.bigint(),
  },
  { storage: immediateVacuum, indexes: ['(created_at)'] },
)

/** Disables statistics on the key column, because PostgreSQL would copy sample keys to pg_statistic. */
export const vaultDdl = `${vault.ddl}alter table tidegate.gate_vault alter column data_key_sealed set statistics 0;\n`

export interface StoreOptions {
  pool: Db
  keyring: Keyring
  clock: Clock
  random: Random
}

export type Vault = ReturnType<typeof createVault>

const purpose = 'gate-data-key'

export function createVault({ pool, keyring, clock, random }: StoreOptions) {
  async function find(gateSessionId: GateSessionId): Promise<DataKey | undefined> {
    const { rows } = await pool.query<{ sealed: Buffer }>(
      'select data_key_sealed as sealed from tidegate.gate_vault where gate_session_id = $1',
      [gateSessionId],
    )
    if (!rows[0]) return undefined
    const secret = open(rows[0].sealed, { keyring, purpose, context: gateSessionId })
    if (!secret)
      throw unavailable(new Error(`no master key opens the data key of ${gateSessionId}`))
    return createDataKey(secret)
  }

  return {
    /** Returns undefined once the key is deleted. Throws 503 if this process lacks the master key to decrypt it. */
    find,
    /** Returns the session's key, creating it if needed. */
    async ensure(gateSessionId: GateSessionId): Promise<DataKey> {
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
      if (!key) throw new Error(`the data key of ${gateSessionId} was deleted`)
      return key
    },
    async remove(gateSessionIds: GateSessionId[]): Promise<void> {
      if (gateSessionIds.length === 0) return
      await pool.query('delete from tidegate.gate_vault where gate_session_id = any($1)', [
        gateSessionIds,
      ])
    },
  }
}

export const bundleSchema = z
  .strictObject({ integrator: deliveryEnvelopeSchema, gate: deliveryEnvelopeSchema })
  .meta({ id: 'GateDeliveryBundle' })
export type DeliveryBundle = z.output<typeof bundleSchema>

/** Encrypts the bundle, so that deleting the data key makes it unreadable in events and read models. */
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

/** Returns the decrypted delivery; undefined if there is none or its data key is deleted. */
export async function findBundle(
  vault: Vault,
  { id: gateSessionId, delivery_sealed: sealed }: GateSessionRow,
): Promise<DeliveryBundle | undefined> {
  const dataKey = sealed ? await vault.find(gateSessionId) : undefined
  const text = sealed && dataKey?.open(sealed, { context: gateSessionId })?.toString('utf8')
  return typeof text === 'string' ? bundleSchema.parse(JSON.parse(text)) : undefined
}
