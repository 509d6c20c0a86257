import { createHash } from 'node:crypto'
import { lockKey, type Tx } from './pool.ts'

export interface TableSet {
  name: string
  /** One of its tables, with its schema: gone = the set is made anew. */
  table: string
  ddl: string
}

const registry = `
  create schema if not exists tidegate;
  create table if not exists tidegate.table_sets (name text primary key, ddl_hash text not null);
`

/**
 * Makes a set of tables, once for each text of its statements. Any number of processes may call it at once.
 * Repeated statements would still lock the tables, and could delay or deadlock the processes at work. Where all is
 * made, a user who may not make tables can call it.
 */
export async function ensureTables(tx: Tx, set: TableSet): Promise<void> {
  // `create ... if not exists` fails when two run at once, so they take turns.
  await tx.query('select pg_advisory_xact_lock($1)', [lockKey('tidegate:tables')])
  const hash = createHash('sha256').update(set.ddl).digest('hex')
  if (await isMade(tx, set, hash)) return
  await make(tx, set, hash).catch((cause) => {
    throw isForbidden(cause) ? new MayNotMakeTables(set.name, { cause }) : cause
  })
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

async function isMade(tx: Tx, { name, table }: TableSet, hash: string): Promise<boolean> {
  const { rows } = await tx.query<{ has: boolean }>(
    `select to_regclass('tidegate.table_sets') is not null as has`,
  )
  if (!rows[0]?.has) return false
  const { rowCount } = await tx.query(
    'select from tidegate.table_sets where name = $1 and ddl_hash = $2 and to_regclass($3) is not null',
    [name, hash, table],
  )
  return rowCount === 1
}

async function make(tx: Tx, { name, ddl }: TableSet, hash: string): Promise<void> {
  await tx.query(`set local client_min_messages = warning; ${registry}`)
  await tx.query(ddl)
  await tx.query(
    `insert into tidegate.table_sets values ($1, $2)
     on conflict (name) do update set ddl_hash = excluded.ddl_hash`,
    [name, hash],
  )
}

// Class 42, insufficient_privilege (postgresql.org/docs/current/errcodes-appendix.html).
const isForbidden = (error: unknown) => error instanceof Error && 'code' in error && error.code === '42501'
