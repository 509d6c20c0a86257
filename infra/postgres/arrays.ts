import { hash } from 'node:crypto'
import type { Client, ClientBase, QueryConfig } from 'pg'

export interface Column<Row> {
  name: string
  type: ElementType
  /** The column's Postgres type if it isn't an element type: the value is sent as text and cast. */
  cast?: string | undefined
  /** Sent in one array with the other packed columns, because each array has a fixed cost in Postgres. */
  isPacked?: boolean | undefined
  encode: (row: Row) => Element
}

/** Rows as a source for a `from` clause: its column names, SQL and parameters. */
export interface Unnested {
  names: string
  source: string
  values: Buffer[]
}

/** Returns the rows as `unnest` of one array parameter per column, numbered from `firstParameter`. */
export function unnest<Row>(columns: Column<Row>[], rows: Row[], firstParameter = 1): Unnested {
  const packed = columns.filter(({ isPacked }) => isPacked)
  const unpacked = columns.filter(({ isPacked }) => !isPacked)
  const sent = packed.length === 0 ? unpacked : [...unpacked, packedColumn(packed)]
  const names = [...unpacked, ...packed].map(({ name }) => name).join(', ')
  const arrays = `unnest(${sent.map(({ type }, i) => `$${firstParameter + i}::${type}[]`).join(', ')})`
  const values = sent.map(({ type, encode }) => arrayParameter(type, rows.map(encode)))
  const cast = [
    ...unpacked.map(({ name, cast }) => (cast ? `${name}::${cast}` : name)),
    ...packed.map(({ type, cast = type }, i) => `packed[${i + 1}]::${cast}`),
  ].join(', ')
  if (cast === names) return { names, source: arrays, values }
  const from = `${arrays} as sent (${sent.map(({ name }) => name).join(', ')})`
  return {
    names,
    source: `(select ${cast} from ${from} ${packed.length > 0 ? unpackSql : ''})`,
    values,
  }
}

// Without `offset 0` Postgres would parse the text again for each column.
const unpackSql = 'cross join lateral (select packed_text::text[] as packed offset 0) as texts'

function packedColumn<Row>(columns: Column<Row>[]): Column<Row> {
  return {
    name: 'packed_text',
    type: 'text',
    encode: (row) => arrayLiteral(columns.map(({ encode }) => encode(row))),
  }
}

/** Returns an array in Postgres's text format (manual, section 8.15.6). Not for Buffers. */
export function arrayLiteral(values: Element[]): string {
  return `{${values.map((value) => (value === null ? 'NULL' : quoted(String(value)))).join()}}`
}

const quoted = (text: string) => `"${/["\\]/.test(text) ? text.replace(/["\\]/g, '\\$&') : text}"`

/** A statement in a `with` clause (common table expression). */
export interface Cte {
  as: string
  /** Returns the SQL, with parameters numbered from `firstParameter`, and their values. */
  sql: (firstParameter: number) => { text: string; values: Buffer[] }
}

/**
 * Runs the statements as one, in one round trip. They must not change the same tables. A statement can read the rows
 * that an earlier one returns, by its name.
 */
export async function runAsOneStatement(db: Pick<ClientBase, 'query'>, ctes: Cte[]): Promise<void> {
  if (ctes.length > 0) await db.query(statementOf(ctes))
}

/**
 * Pipelines the statements and `ending`, which ends the transaction. If a statement fails, the transaction is aborted
 * and `ending` has no effect.
 */
export async function runAndEnd(
  tx: Sender,
  ctes: Cte[],
  ending: (string | QueryConfig)[],
): Promise<void> {
  // Built before anything is sent, so that `ending` is never sent alone if this throws.
  const statements = ctes.length > 0 ? [statementOf(ctes), ...ending] : ending
  await Promise.all(sendInOneWrite(tx, () => statements.map((statement) => tx.query(statement))))
}

type Sender = Pick<Client, 'query' | 'connection'>

/**
 * Sends all queries of `send` with one socket write, on a connection that pipelines. Each write wakes a Postgres
 * process: under low load that took a quarter of a server's CPU time.
 */
export function sendInOneWrite<T>({ connection }: Sender, send: () => T): T {
  connection.stream.cork()
  try {
    return send()
  } finally {
    connection.stream.uncork()
  }
}

// Postgres truncates longer names, and could then confuse two prepared statements.
const maxNameLength = 63

const emptySelect = { name: '', text: 'select', values: [] }

/** Returns `main` with the CTEs in its `with` clause, so that all statements take effect or none does. */
export function statementOf(
  ctes: Cte[],
  main: { name: string; text: string; values: Buffer[] } = emptySelect,
): QueryConfig {
  if (ctes.length === 0) return main
  const values = [...main.values]
  const clauses = ctes.map(({ as, sql }) => {
    const cte = sql(values.length + 1)
    values.push(...cte.values)
    return `${as} as (${cte.text})`
  })
  const names = [main.name, ...ctes.map(({ as }) => as)].filter(Boolean).join('+')
  const name = names.length > maxNameLength ? hash('sha256', names).slice(0, maxNameLength) : names
  return { name, text: `with ${clauses.join(', ')} ${main.text}`, values }
}

export type ElementType = 'text' | 'bigint' | 'integer' | 'boolean' | 'bytea'
export type Element = string | number | boolean | Buffer | null

// Built-in type OIDs, which never change (src/include/catalog/pg_type.dat).
const oids: Record<ElementType, number> = {
  boolean: 16,
  bytea: 17,
  bigint: 20,
  integer: 23,
  text: 25,
}
const headerBytes = 20
const nullLength = -1

/**
 * Encodes a one-dimensional array in Postgres's binary format (array_recv): dimensions, a has-nulls flag, the element
 * type, length and lower bound, then each element preceded by its size in bytes. The text format is slower: a row of
 * 1.5 KB bytea took 21 µs in this process and 51 µs in Postgres, instead of 8 and 9.
 */
export function arrayParameter(type: ElementType, elements: Element[]): Buffer {
  const sizes = elements.map((element) => sizeOf(type, element))
  const total = sizes.reduce((sum, size) => sum + 4 + Math.max(size, 0), headerBytes)
  const array = Buffer.allocUnsafe(total)
  const hasNulls = elements.includes(null) ? 1 : 0
  let at = 0
  for (const number of [1, hasNulls, oids[type], elements.length, 1])
    at = array.writeInt32BE(number, at)
  elements.forEach((element, i) => {
    const size = sizes[i] ?? nullLength
    at = array.writeInt32BE(size, at)
    if (size > 0) at += writeElement(array, { type, element, at })
  })
  return array
}

function sizeOf(type: ElementType, element: Element): number {
  if (element === null) return nullLength
  if (type === 'bigint') return 8
  if (type === 'integer') return 4
  if (type === 'boolean') return 1
  return typeof element === 'string'
    ? Buffer.byteLength(element)
    : Buffer.isBuffer(element)
      ? element.length
      : 0
}

function writeElement(
  array: Buffer,
  { type, element, at }: { type: ElementType; element: Element; at: number },
): number {
  if (typeof element === 'string') return array.write(element, at)
  if (Buffer.isBuffer(element)) return element.copy(array, at)
  if (type === 'boolean') return array.writeUInt8(element ? 1 : 0, at) - at
  if (typeof element !== 'number') throw new TypeError(`not a ${type}: ${typeof element}`)
  return (
    (type === 'bigint'
      ? array.writeBigInt64BE(BigInt(element), at)
      : array.writeInt32BE(element, at)) - at
  )
}
