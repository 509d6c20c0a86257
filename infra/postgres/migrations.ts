import { lockKey, type Tx } from './pool.ts'
import type { Table } from './table.ts'

/**
 * Tables that are made once and then changed in numbered steps, because no event fills them anew. The number reached
 * is in `schema_migrations` of their own schema, so that it is lost, moved or restored together with them.
 */
export interface Migrations {
  name: string
  /** Default `tidegate`. It is made where it is missing. */
  schema?: string
  /** Makes everything as it is now. It is step 1, and all that an empty database needs. */
  create: string
  /**
   * What leads a database from one number to the next: the first of them from 1 to 2. Whoever adds one changes
   * `create` to the same end. One that was released is never changed, since it has been run somewhere.
   */
  changes?: string[]
}

export const ddlOf = (...tables: Pick<Table<never>, 'ddl'>[]): string => tables.map(({ ddl }) => ddl).join('')

/**
 * Brings each set of tables to its newest number. Any number of processes may call it at once. Where nothing is left
 * to do, it locks no table that is at work, and a user who may not make tables can call it.
 */
export async function runMigrations(tx: Tx, all: Migrations[]): Promise<void> {
  await tx.query('select pg_advisory_xact_lock($1)', [lockKey('tidegate:migrations')])
  for (const migrations of all) {
    const steps = stepsAfter(await reachedNumber(tx, migrations), migrations)
    if (steps.length === 0) continue
    await runSteps(tx, migrations, steps).catch((cause) => {
      throw isForbidden(cause) ? new MayNotMakeTables(migrations.name, { cause }) : cause
    })
  }
}

const newestOf = ({ changes = [] }: Migrations) => 1 + changes.length

/** The statements that a database at this number lacks; 0 = nothing was made yet. Throws NewerTables. */
export function stepsAfter(number: number, migrations: Migrations): string[] {
  const { name, create, changes = [] } = migrations
  if (number > newestOf(migrations)) throw new NewerTables(name, { number, known: newestOf(migrations) })
  return number === 0 ? [create] : changes.slice(number - 1)
}

/** The database was used with a later version of the program. */
export class NewerTables extends Error {
  constructor(name: string, { number, known }: { number: number; known: number }) {
    super(
      `The tables of "${name}" are at step ${number}, and this version knows steps up to ${known}, ` +
        'because a later version of Tidegate has changed them: start that version, or restore a backup of before.',
    )
  }
}

/** The database user may not make or change the tables that this version needs. */
export class MayNotMakeTables extends Error {
  constructor(name: string, options: ErrorOptions) {
    super(
      `The tables of "${name}" are missing or of another version, and the database user may not make them. ` +
        'Run `tidegate migrate --grant <this user>` as a user who may.',
      options,
    )
  }
}

const registryOf = ({ schema = 'tidegate' }: Migrations) => `${schema}.schema_migrations`

async function reachedNumber(tx: Tx, migrations: Migrations): Promise<number> {
  const registry = registryOf(migrations)
  const found = await tx.query<{ is_there: boolean }>('select to_regclass($1) is not null as is_there', [
    registry,
  ])
  if (!found.rows[0]?.is_there) return 0
  const { rows } = await tx.query<{ number: number }>(`select number from ${registry} where name = $1`, [
    migrations.name,
  ])
  return rows[0]?.number ?? 0
}

async function runSteps(tx: Tx, migrations: Migrations, steps: string[]): Promise<void> {
  const { name, schema = 'tidegate' } = migrations
  const registry = registryOf(migrations)
  await tx.query(`set local client_min_messages = warning;
    create schema if not exists ${schema};
    create table if not exists ${registry} (name text primary key, number integer not null)`)
  for (const step of steps) await tx.query(step)
  await tx.query(
    `insert into ${registry} values ($1, $2) on conflict (name) do update set number = excluded.number`,
    [name, newestOf(migrations)],
  )
}

// Class 42, insufficient_privilege (postgresql.org/docs/current/errcodes-appendix.html).
const isForbidden = (error: unknown) => error instanceof Error && 'code' in error && error.code === '42501'
