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
 * Repeated statements would still lock the tables, and could delay or deadlock the processes at work.
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
