import type { Tx } from '../../../infra/postgres/pool.ts'
import { storable } from '../../../infra/postgres/table.ts'
import type { Row, View } from './view.ts'
import { refused, ViewFailed } from './view-failed.ts'

type Tables = View['tables']

export interface Keyed {
  table: string
  key: Row
}

/** The rows of a batch, by table and key: undefined = there is none; null = it goes. */
export interface LoadedRows {
  get(at: Keyed): Row | undefined
  set(at: Keyed, row: Row | null): void
  write(tx: Tx): Promise<void>
}

/** Reads the rows with these keys. Several of one table are read at once. */
export async function readRows(tx: Tx, tables: Tables, keys: Keyed[]): Promise<LoadedRows> {
  const states = new Map<string, { at: Keyed; row: Row | null }>()
  const nameOf = ({ table, key }: Keyed) =>
    JSON.stringify([table, ...keyColumns(tables, table).map((one) => key[one])])
  const unique = [...new Map(keys.map((at) => [nameOf(at), at])).values()]
  for (const [table, some] of Map.groupBy(unique, (at) => at.table)) {
    const found = await findRows(tx, tables, { table, keys: some.map(({ key }) => key) })
    for (const [i, at] of some.entries())
      states.set(nameOf(at), { at, row: found.get(i + 1) ?? null })
  }
  const changed = new Set<string>()

  return {
    get: (at) => states.get(nameOf(at))?.row ?? undefined,
    set(at, row) {
      states.set(nameOf(at), { at, row })
      changed.add(nameOf(at))
    },
    async write(tx) {
      const all = [...changed].flatMap((one) => states.get(one) ?? [])
      for (const [table, some] of Map.groupBy(all, ({ at }) => at.table)) {
        const gone = some.filter(({ row }) => row === null).map(({ at }) => at.key)
        const saved = some.flatMap(({ row, at }) => (row ? [{ ...row, ...at.key }] : []))
        await writeRows(tx, tables, { table, gone, saved }).catch((error) => refused(table, error))
      }
    },
  }
}

export const keyColumns = (tables: Tables, table: string): string[] =>
  viewTableOf(tables, table).key

export function viewTableOf(tables: Tables, name: string): Tables[string] {
  const found = tables[name]
  if (found) return found
  throw new ViewFailed('the handler names a table that the view has not')
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
    .catch((error) => refused(table, error))
  return new Map(rows.map(({ at, row }) => [at, row]))
}

async function writeRows(
  tx: Tx,
  tables: Tables,
  { table, gone, saved }: { table: string; gone: Row[]; saved: Row[] },
): Promise<void> {
  const { columns, key } = viewTableOf(tables, table)
  const own = key.map((one) => `t."${one}" = k."${one}"`).join(' and ')
  if (gone.length > 0)
    await tx.query(
      `delete from "${table}" t using json_populate_recordset(null::"${table}", $1::json) k where ${own}`,
      [jsonOf(gone)],
    )
  if (saved.length === 0) return
  const others = Object.keys(columns).filter((one) => !key.includes(one))
  const replaced = others.map((one) => `"${one}" = excluded."${one}"`).join(', ')
  await tx.query(
    `insert into "${table}" select * from json_populate_recordset(null::"${table}", $1::json)
     on conflict (${quotedNames(key)}) do ${replaced ? `update set ${replaced}` : 'nothing'}`,
    [jsonOf(saved)],
  )
}

export const quotedNames = (names: string[]): string => names.map((one) => `"${one}"`).join(', ')

// Postgres has no text with a NUL or half a pair, and a page can send both.
const jsonOf = (rows: Row[]): string =>
  JSON.stringify(rows, (_, value: unknown) =>
    typeof value === 'string' ? storable(value.toWellFormed()) : value,
  )
