import { systemCode } from '../thrown.ts'
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
   * `create` to the same end. It only adds, so that programs of the release before go on beside it. One that was
   * released is never changed, since it has been run somewhere.
   */
  changes?: string[]
}

export const ddlOf = (...tables: Pick<Table<never>, 'ddl'>[]): string =>
  tables.map(({ ddl }) => ddl).join('')

/**
 * Brings each set of tables to its newest number. Any number of processes may call it at once. Where nothing is left
 * to do, it locks no table that is at work, and a user who may not make tables can call it.
 */
export async function runMigrations(tx: Tx, all: Migrations[]): Promise<void> {
  await tx.query('select pg_advisory_xact_lock($1)', [lockKey('tidegate:migrations')])
  await refuseUnreleased(tx)
  for (const migrations of all) {
    const steps = stepsAfter(await reachedNumber(tx, migrations), migrations)
    if (steps.length === 0) continue
    await runSteps(tx, migrations, steps).catch((cause) => {
      throw systemCode(cause) === insufficientPrivilege
        ? new MayNotMakeTables(migrations.name, { cause })
        : cause
    })
  }
}

/**
 * The statements that a database at this number lacks; 0 = nothing was made yet. At a later number it lacks nothing:
 * steps only add, so that the release before still starts where one has to go back to it.
 */
function stepsAfter(number: number, migrations: Migrations): string[] {
  const { create, changes = [] } = migrations
  return number === 0 ? [create] : changes.slice(number - 1)
}

/** The database user may not make or change the tables that this version needs. */
class MayNotMakeTables extends Error {
  constructor(name: string, options: ErrorOptions) {
    super(
      `The tables of "${name}" are missing or of another version, and the database user may not make them. ` +
        'Run `tidegate migrate --grant <this user>` as a user who may.',
      options,
    )
  }
}

/** The database is of a program before the first release. Ids of schemas began anew, so its events would be read as others. */
export class UnreleasedTables extends Error {
  constructor() {
    super(
      'The database and its log are of a program before 0.1.0, whose events no release can read: ' +
        'begin with an empty database, and with another DATA_DIR or KAFKA_TOPIC_PREFIX.',
    )
  }
}

// Those programs counted no steps. They kept a hash of each set of tables here.
async function refuseUnreleased(tx: Tx): Promise<void> {
  const { rows } = await tx.query<{ is_there: boolean }>(
    `select to_regclass('tidegate.table_sets') is not null as is_there`,
  )
  if (rows[0]?.is_there) throw new UnreleasedTables()
}

const registryOf = ({ schema = 'tidegate' }: Migrations) => `${schema}.schema_migrations`

async function reachedNumber(tx: Tx, migrations: Migrations): Promise<number> {
  const registry = registryOf(migrations)
  const found = await tx.query<{ is_there: boolean }>(
    'select to_regclass($1) is not null as is_there',
    [registry],
  )
  if (!found.rows[0]?.is_there) return 0
  const { rows } = await tx.query<{ number: number }>(
    `select number from ${registry} where name = $1`,
    [migrations.name],
  )
  return rows[0]?.number ?? 0
}

async function runSteps(tx: Tx, migrations: Migrations, steps: string[]): Promise<void> {
  const { name, schema = 'tidegate', changes = [] } = migrations
  const registry = registryOf(migrations)
  await tx.query(`set local client_min_messages = warning;
    create schema if not exists ${schema};
    create table if not exists ${registry} (name text primary key, number integer not null)`)
  for (const step of steps) await tx.query(step)
  await tx.query(
    `insert into ${registry} values ($1, $2) on conflict (name) do update set number = excluded.number`,
    [name, 1 + changes.length],
  )
}

const insufficientPrivilege = '42501'
