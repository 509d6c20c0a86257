import type { Keyring } from '../crypto/keyring.ts'
import { open, seal } from '../crypto/sealing.ts'
import type { Random } from '../ids.ts'
import { ddlOf, type Migrations } from '../postgres/migrations.ts'
import type { Db } from '../postgres/pool.ts'
import { column, constrained, insertInto, primaryKey, replacing, table } from '../postgres/table.ts'

// Holds a single row, sealed by a master key of the installation: keys that don't open it belong to another one.
const canaries = table('tidegate.master_key_canary', {
  only_one: constrained(primaryKey(column.boolean()), 'default true check (only_one)'),
  sealed: column.bytea(),
})

export const canaryMigrations: Migrations = { name: 'master-key-canary', create: ddlOf(canaries) }

/** The master keys of the settings open nothing of what the installation stored. */
export class WrongMasterKeys extends Error {
  constructor() {
    super(
      'The master keys do not open what this database holds: they are of another installation, or a key was taken ' +
        "away too early. Set TIDEGATE_MASTER_KEYS, its file or its command as this installation's servers had it, " +
        'with the keys that were first before; `tidegate dev` has its own in DATA_DIR, in the file master-keys.',
    )
  }
}

const purpose = 'master-key-canary'

/** Returns whether the keyring opens the canary; undefined if there is none. */
export async function openCanary(db: Db, keyring: Keyring): Promise<boolean | undefined> {
  const { rows } = await db.query<{ sealed: Buffer }>(
    'select sealed from tidegate.master_key_canary',
  )
  return rows[0] && open(rows[0].sealed, { keyring, purpose }) !== undefined
}

/** Seals the canary by the current master key, unless there is one that is not replaced. */
export async function writeCanary(
  db: Db,
  { replaces = false, ...sealing }: { keyring: Keyring; random: Random; replaces?: boolean },
): Promise<void> {
  const row = { only_one: true, sealed: seal(Buffer.alloc(0), { ...sealing, purpose }) }
  const conflict = replaces ? replacing(canaries) : 'on conflict do nothing'
  await db.query(insertInto(canaries, { columns: canaries.columns, rows: [row], conflict }))
}
