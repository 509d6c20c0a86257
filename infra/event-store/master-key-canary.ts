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

export interface CanaryDeps {
  keyring: Keyring
  /** Returns whether a stored secret opens; undefined if none is stored. */
  opensStored: () => Promise<boolean | undefined>
}

/**
 * Returns what the master keys were tried on: the canary, else secrets; undefined where nothing is stored. Throws
 * WrongMasterKeys.
 */
export async function tryMasterKeys(
  db: Db,
  { keyring, opensStored }: CanaryDeps,
): Promise<'canary' | 'secrets' | undefined> {
  const { rows } = await db.query<{ sealed: Buffer }>('select sealed from tidegate.master_key_canary')
  const opens = rows[0] ? open(rows[0].sealed, { keyring, purpose }) !== undefined : await opensStored()
  if (opens === false) throw new WrongMasterKeys()
  return rows[0] ? 'canary' : opens && 'secrets'
}

interface CanaryOptions extends CanaryDeps {
  random: Random
  /** Returns true if nothing was ever stored. A database that is being restored may be empty, too. */
  isNew: () => Promise<boolean>
}

/** Throws WrongMasterKeys. Creates the canary once a stored secret has been opened, or where everything is new. */
export async function guardMasterKeys(db: Db, { random, isNew, ...deps }: CanaryOptions): Promise<void> {
  const tried = await tryMasterKeys(db, deps)
  if (tried === 'canary' || (tried === undefined && !(await isNew()))) return
  await writeCanary(db, { ...deps, random })
  // Another process may have been first, with other keys.
  await tryMasterKeys(db, deps)
}

/** Seals the canary by the current master key. */
export async function writeCanary(
  db: Db,
  { replaces = false, ...sealing }: { keyring: Keyring; random: Random; replaces?: boolean },
): Promise<void> {
  const row = { only_one: true, sealed: seal(Buffer.alloc(0), { ...sealing, purpose }) }
  const conflict = replaces ? replacing(canaries) : 'on conflict do nothing'
  await db.query(insertInto(canaries, { columns: canaries.columns, rows: [row], conflict }))
}
