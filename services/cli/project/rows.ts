import type { Tx } from '../../../infra/postgres/pool.ts'
import { replaceNul } from '../../../infra/postgres/table.ts'
import type { Row, View } from './view.ts'
import { throwRejectedRows, ViewFailed } from './view-failed.ts'

type Tables = View['tables']

/** Reference to a row: its table and key. */
export interface RowRef {
  table: string
  key: Row
}

/** Rows of a batch in memory. `get` returns undefined if there is no row, and setting null deletes the row. */
export interface LoadedRows {
  get(ref: RowRef): Row | undefined
  set(ref: RowRef, row: Row | null): void
  write(tx: Tx): Promise<void>
}

/** Reads the rows with these keys, with one query per table. */
export async function readRows(tx: Tx, tables: Tables, keys: RowRef[]): Promise<LoadedRows> {
  const rowStates = new Map<string, { ref: RowRef; row: Row | null }>()
  const rowId = ({ table, key }: RowRef) =>
    JSON.stringify([table, ...keyColumns(tables, table).map((column) => key[column])])
  const unique = [...new Map(keys.map((ref) => [rowId(ref), ref])).values()]
  for (const [table, refs] of Map.groupBy(unique, (ref) => ref.table)) {
    const rows = await findRows(tx, tables, { table, keys: refs.map(({ key }) => key) })
    for (const [i, ref] of refs.entries())
      rowStates.set(rowId(ref), { ref, row: rows.get(i + 1) ?? null })
  }
  const changed = new Set<string>()

  return {
    get: (ref) => rowStates.get(rowId(ref))?.row ?? undefined,
    set(ref, row) {
      rowStates.set(rowId(ref), { ref, row })
      changed.add(rowId(ref))
    },
    async write(tx) {
      const writes = [...changed].flatMap((id) => rowStates.get(id) ?? [])
      for (const [table, rows] of Map.groupBy(writes, ({ ref }) => ref.table)) {
        const deletes = rows.filter(({ row }) => row === null).map(({ ref }) => ref.key)
        const upserts = rows.flatMap(({ row, ref }) => (row ? [{ ...row, ...ref.key }] : []))
        await writeRows(tx, tables, { table, deletes, upserts }).catch((error) =>
          throwRejectedRows(table, error),
        )
      }
    },
  }
}

export const keyColumns = (tables: Tables, table: string): string[] =>
  requireViewTable(tables, table).key

export function requireViewTable(tables: Tables, name: string): Tables[string] {
  const table = tables[name]
  if (table) return table
  throw new ViewFailed('the handler names a table that the view does not have')
}

async function findRows(
  tx: Tx,
  tables: Tables,
  { table, keys }: { table: string; keys: Row[] },
): Promise<Map<number, Row>> {
  const { rows } = await tx
    .query<{ at: number; row: Row }>(
      `select k.ordinality::integer as at, row_to_json(t) as row
       from json_populate_recordset(null::"${table}", $1::json) with ordinality as k
         join "${table}" t using (${quotedNames(keyColumns(tables, table))})`,
      [jsonOf(keys)],
    )
    .catch((error) => throwRejectedRows(table, error))
  return new Map(rows.map(({ at, row }) => [at, row]))
}

async function writeRows(
  tx: Tx,
  tables: Tables,
  { table, deletes, upserts }: { table: string; deletes: Row[]; upserts: Row[] },
): Promise<void> {
  const { columns, key } = requireViewTable(tables, table)
  const sameKey = key.map((name) => `t."${name}" = k."${name}"`).join(' and ')
  if (deletes.length > 0)
    await tx.query(
      `delete from "${table}" t using json_populate_recordset(null::"${table}", $1::json) k where ${sameKey}`,
      [jsonOf(deletes)],
    )
  if (upserts.length === 0) return
  const others = Object.keys(columns).filter((name) => !key.includes(name))
  const assignments = others.map((name) => `"${name}" = excluded."${name}"`).join(', ')
  await tx.query(
    `insert into "${table}" select * from json_populate_recordset(null::"${table}", $1::json)
     on conflict (${quotedNames(key)}) do ${assignments ? `update set ${assignments}` : 'nothing'}`,
    [jsonOf(upserts)],
  )
}

export const quotedNames = (names: string[]): string => names.map((name) => `"${name}"`).join(', ')

// Replaces NUL and lone surrogates, which a page can send but Postgres cannot store.
const jsonOf = (rows: Row[]): string =>
  JSON.stringify(rows, (_, value: unknown) =>
    typeof value === 'string' ? replaceNul(value.toWellFormed()) : value,
  )
