import { createHash } from 'node:crypto'
import { lockKey, type Tx } from './pool.ts'

export interface TableSet {
  /** Names the set, the same in every version of it. */
  name: string
  /** One of its tables, with its schema: gone = the set is made anew. */
  table: string
  /** Statements that make what is missing of the set, and can be run again. */
  ddl: string
}

const registry = `
  create schema if not exists tidegate;
  create table if not exists tidegate.table_sets (name text primary key, ddl_hash text not null);
`

/**
 * Makes a set of tables, once for each text of its statements; may be called by any number of processes at once.
 * Statements that have nothing to do would still lock the tables: a process that starts would hold up those at work,
 * or end one of them by a deadlock.
 */
export async function ensureTables(tx: Tx, { name, table, ddl }: TableSet): Promise<void> {
  // `create ... if not exists` fails when two run at once, so they take turns.
  await tx.query('select pg_advisory_xact_lock($1)', [lockKey('tidegate:tables')])
  await tx.query(`set local client_min_messages = warning; ${registry}`)
  const hash = createHash('sha256').update(ddl).digest('hex')
  const { rowCount } = await tx.query(
    'select from tidegate.table_sets where name = $1 and ddl_hash = $2 and to_regclass($3) is not null',
    [name, hash, table],
  )
  if (rowCount) return
  await tx.query(ddl)
  await tx.query(
    `insert into tidegate.table_sets values ($1, $2)
     on conflict (name) do update set ddl_hash = excluded.ddl_hash`,
    [name, hash],
  )
}
