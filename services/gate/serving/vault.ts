import type { Keyring } from '../../../infra/crypto/keyring.ts'
import { createDataKey, type DataKey, dataKeyBytes, open, seal } from '../../../infra/crypto/sealing.ts'
import type { Clock, GateSessionId, Random } from '../../../infra/ids.ts'
import type { Db } from '../../../infra/postgres/pool.ts'

export interface VaultOptions {
  pool: Db
  keyring: Keyring
  clock: Clock
  random: Random
}

/** The keys that deliveries are encrypted under, one for each signup, kept nowhere else. */
export interface Vault {
  /** The signup's key, made now where there is none; every caller gets the same. Durable when it resolves. */
  make(gateSessionId: GateSessionId): Promise<DataKey>
  /** undefined once it was deleted, or when none of our master keys opens it. */
  find(gateSessionId: GateSessionId): Promise<DataKey | undefined>
  /** For good. */
  remove(gateSessionIds: GateSessionId[]): Promise<void>
}

const purpose = 'gate-data-key'

export function createVault({ pool, keyring, clock, random }: VaultOptions): Vault {
  async function find(gateSessionId: GateSessionId): Promise<DataKey | undefined> {
    const { rows } = await pool.query<{ sealed: Buffer }>(
      'select data_key_sealed as sealed from tidegate.gate_vault where gate_session_id = $1',
      [gateSessionId],
    )
    const secret = rows[0] && open(rows[0].sealed, { keyring, purpose, context: gateSessionId })
    return secret && createDataKey(secret)
  }

  return {
    find,
    async make(gateSessionId) {
      const sealed = seal(random(dataKeyBytes), { keyring, purpose, context: gateSessionId, random })
      await pool.query(
        'insert into tidegate.gate_vault values ($1, $2, $3) on conflict (gate_session_id) do nothing',
        [gateSessionId, sealed, clock()],
      )
      const key = await find(gateSessionId)
      if (!key) throw new Error(`no master key opens the data key of ${gateSessionId}`)
      return key
    },
    async remove(gateSessionIds) {
      if (gateSessionIds.length === 0) return
      await pool.query('delete from tidegate.gate_vault where gate_session_id = any($1)', [gateSessionIds])
    },
  }
}
