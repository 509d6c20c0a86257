import { systemCode } from '../thrown.ts'
import { lockKey, type Tx } from './pool.ts'
import type { Table } from './table.ts'

/**
 * Migrations of a set of tables that can't be rebuilt from events. The version reached is stored in `schema_migrations`
 * of the tables' own schema, so it is lost, moved or restored together with them.
 */
export interface Migrations {
  name: string
  /** Schema of the tables, created if missing. Default `tidegate`. */
  schema?: string
  /** SQL that creates the current tables. It is version 1, and all that an empty database needs. */
  create: string
  /**
   * SQL of the steps from each version to the next; the first one leads from 1 to 2. Change `create` to the same
   * result. A step must only add, so that processes of the previous release keep working. Never change a released step.
   */
  changes?: string[]
}

export const ddlOf = (...tables: Pick<Table<never>, 'ddl'>[]): string =>
  tables.map(({ ddl }) => ddl).join('')

/**
 * Migrates each set of tables to its newest version. Any number of processes may call it at once. Without pending steps
 * it locks no table in use, and needs no privilege to create tables.
 */
export async function runMigrations(tx: Tx, sets: Migrations[]): Promise<void> {
  await tx.query('select pg_advisory_xact_lock($1)', [lockKey('tidegate:migrations')])
  await refusePreRelease(tx)
  for (const migrations of sets) {
    const steps = stepsAfter(await currentVersion(tx, migrations), migrations)
    if (steps.length === 0) continue
    await runSteps(tx, migrations, steps).catch((cause) => {
      throw systemCode(cause) === insufficientPrivilege
        ? new MissingCreatePrivilege(migrations.name, { cause })
        : cause
    })
  }
}

/**
 * Returns the steps that a database at this version lacks (0 = no tables yet). For a version newer than this program's
 * it returns none: steps only add, so the previous release still starts after a rollback.
 */
function stepsAfter(version: number, migrations: Migrations): string[] {
  const { create, changes = [] } = migrations
  return version === 0 ? [create] : changes.slice(version - 1)
}

/** Thrown if the database user lacks the privilege to create or change the tables that this version needs. */
class MissingCreatePrivilege extends Error {
  constructor(name: string, options: ErrorOptions) {
    super(
      `The tables of "${name}" are missing or of another version, and the database user may not create tables. ` +
        'Run `tidegate migrate --grant <this user>` as a user with that right.',
      options,
    )
  }
}

/** Thrown for a database of a pre-release, whose events would be misread: schema ids restarted with 0.1.0. */
export class PreReleaseTables extends Error {
  constructor() {
    super(
      'The database and its log were created before 0.1.0, and no release can read their events: ' +
        'start with an empty database, and with another DATA_DIR or KAFKA_TOPIC_PREFIX.',
    )
  }
}

// Pre-releases stored a hash of each set of tables in `table_sets`, instead of a version.
async function refusePreRelease(tx: Tx): Promise<void> {
  const { rows } = await tx.query<{ is_there: boolean }>(
    `select to_regclass('tidegate.table_sets') is not null as is_there`,
  )
  if (rows[0]?.is_there) throw new PreReleaseTables()
}

const versionTableOf = ({ schema = 'tidegate' }: Migrations) => `${schema}.schema_migrations`

async function currentVersion(tx: Tx, migrations: Migrations): Promise<number> {
  const versionTable = versionTableOf(migrations)
  const lookup = await tx.query<{ is_there: boolean }>(
    'select to_regclass($1) is not null as is_there',
    [versionTable],
  )
  if (!lookup.rows[0]?.is_there) return 0
  const { rows } = await tx.query<{ number: number }>(
    `select number from ${versionTable} where name = $1`,
    [migrations.name],
  )
  return rows[0]?.number ?? 0
}

async function runSteps(tx: Tx, migrations: Migrations, steps: string[]): Promise<void> {
  const { name, schema = 'tidegate', changes = [] } = migrations
  const versionTable = versionTableOf(migrations)
  await tx.query(`set local client_min_messages = warning;
    create schema if not exists ${schema};
    create table if not exists ${versionTable} (name text primary key, number integer not null)`)
  for (const step of steps) await tx.query(step)
  await tx.query(
    `insert into ${versionTable} values ($1, $2) on conflict (name) do update set number = excluded.number`,
    [name, 1 + changes.length],
  )
}

const insufficientPrivilege = '42501'
