import { type Column, unnest } from './arrays.ts'
import type { Db } from './pool.ts'

export interface SaveRows<Row> {
  table: string
  /** The first is the primary key. */
  columns: Column<Row>[]
  rows: Row[]
}

export async function saveRows<Row>(db: Db, { table, columns, rows }: SaveRows<Row>): Promise<void> {
  if (rows.length === 0) return
  const { names, source, values } = unnest(columns, rows)
  const [key, ...others] = columns.map(({ name }) => name)
  const replaced = others.map((name) => `${name} = excluded.${name}`).join(', ')
  await db.query(
    `insert into ${table} (${names}) select * from ${source} on conflict (${key}) do update set ${replaced}`,
    values,
  )
}
