import type { Keyring } from '../crypto/keyring.ts'
import { open, seal } from '../crypto/sealing.ts'
import type { Random } from '../ids.ts'
import { ddlOf, type Migrations } from '../postgres/migrations.ts'
import type { Db } from '../postgres/pool.ts'
import { column, constrained, insertInto, overwrite, primaryKey, table } from '../postgres/table.ts'

// A single row, sealed with a master key of the installation. Master keys that can't open it belong to another one.
const canaries = table('tidegate.master_key_canary', {
  only_one: constrained(primaryKey(column.boolean()), 'default true check (only_one)'),
  sealed: column.bytea(),
})

export const canaryMigrations: Migrations = { name: 'master-key-canary', create: ddlOf(canaries) }

/** Thrown if the configured master keys don't open what the installation has stored. */
export class WrongMasterKeys extends Error {
  constructor() {
    super(
      'The master keys do not match this database: they belong to another installation, or a key was removed too early. ' +
        'Restore the previous TIDEGATE_MASTER_KEYS (or its _FILE or _COMMAND), including keys that were first earlier. ' +
        '`tidegate dev` keeps its keys in DATA_DIR, in the file master-keys.',
    )
  }
}

const purpose = 'master-key-canary'

/** Returns true if the keyring can open the canary; undefined if there is none. */
export async function openCanary(db: Db, keyring: Keyring): Promise<boolean | undefined> {
  const { rows } = await db.query<{ sealed: Buffer }>(
    'select sealed from tidegate.master_key_canary',
  )
  return rows[0] && open(rows[0].sealed, { keyring, purpose }) !== undefined
}

/** Seals a canary with the current master key. Keeps an existing one unless `replaces` is set. */
export async function writeCanary(
  db: Db,
  { replaces = false, ...sealing }: { keyring: Keyring; random: Random; replaces?: boolean },
): Promise<void> {
  const row = { only_one: true, sealed: seal(Buffer.alloc(0), { ...sealing, purpose }) }
  const conflict = replaces ? overwrite(canaries) : 'on conflict do nothing'
  await db.query(insertInto(canaries, { columns: canaries.columns, rows: [row], conflict }))
}
