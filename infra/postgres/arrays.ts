import { hash } from 'node:crypto'
import type { Client, ClientBase, QueryConfig } from 'pg'

export interface Column<Row> {
  name: string
  type: ElementType
  /** What the column is of where that is no element type: it is sent as text, and Postgres reads it. */
  cast?: string | undefined
  /** It is sent together with all others of the row that are: an array of its own costs Postgres more than it has. */
  isPacked?: boolean | undefined
  of: (row: Row) => Element
}

export interface Unnested {
  names: string
  source: string
  values: Buffer[]
}

export function unnest<Row>(columns: Column<Row>[], rows: Row[], firstParameter = 1): Unnested {
  const packed = columns.filter(({ isPacked }) => isPacked)
  const others = columns.filter(({ isPacked }) => !isPacked)
  const sent = packed.length === 0 ? others : [...others, packedColumn(packed)]
  const names = [...others, ...packed].map(({ name }) => name).join(', ')
  const arrays = `unnest(${sent.map(({ type }, i) => `$${firstParameter + i}::${type}[]`).join(', ')})`
  const values = sent.map(({ type, of }) => arrayParameter(type, rows.map(of)))
  const cast = [
    ...others.map(({ name, cast }) => (cast ? `${name}::${cast}` : name)),
    ...packed.map(({ type, cast = type }, i) => `packed[${i + 1}]::${cast}`),
  ].join(', ')
  if (cast === names) return { names, source: arrays, values }
  const from = `${arrays} as sent (${sent.map(({ name }) => name).join(', ')})`
  return {
    names,
    source: `(select ${cast} from ${from} ${packed.length > 0 ? readPacked : ''})`,
    values,
  }
}

// Behind offset 0, because Postgres would read the text again for each of its columns.
const readPacked = 'cross join lateral (select packed_text::text[] as packed offset 0) as texts'

function packedColumn<Row>(columns: Column<Row>[]): Column<Row> {
  return {
    name: 'packed_text',
    type: 'text',
    of: (row) => arrayLiteral(columns.map(({ of }) => of(row))),
  }
}

/** In Postgres's text format of arrays, section 8.15.6 of its manual. Bytes are not written so. */
export function arrayLiteral(values: Element[]): string {
  return `{${values.map((value) => (value === null ? 'NULL' : quoted(String(value)))).join()}}`
}

const quoted = (text: string) => `"${/["\\]/.test(text) ? text.replace(/["\\]/g, '\\$&') : text}"`

/** A statement of a `with` clause, whose parameters begin at the number that it is given. */
export interface Part {
  as: string
  at: (firstParameter: number) => { text: string; values: Buffer[] }
}

/**
 * Runs statements in one round trip. They must not change the same tables; a later one may read what an earlier one
 * returns, under the name that it has.
 */
export async function runTogether(db: Pick<ClientBase, 'query'>, parts: Part[]): Promise<void> {
  if (parts.length > 0) await db.query(statementOf(parts))
}

/**
 * Sends the parts and `ending`, statements that end the transaction, without waiting between them. A part that fails
 * aborts the transaction, and then `ending` changes nothing.
 */
export async function runAndEnd(
  tx: Sender,
  parts: Part[],
  ending: (string | QueryConfig)[],
): Promise<void> {
  // Made before anything is sent: if that fails, the ending must not go out by itself.
  const statements = parts.length > 0 ? [statementOf(parts), ...ending] : ending
  await Promise.all(inOneWrite(tx, () => statements.map((statement) => tx.query(statement))))
}

type Sender = Pick<Client, 'query' | 'connection'>

/**
 * Sends the queries that `send` makes in one write to the socket, on a connection that pipelines. Each write wakes the
 * server's process, which was a quarter of a server's processor time where few sessions come at once.
 */
export function inOneWrite<T>({ connection }: Sender, send: () => T): T {
  connection.stream.cork()
  try {
    return send()
  } finally {
    connection.stream.uncork()
  }
}

// Postgres cuts off what is longer, and then takes two statements for one.
const longestName = 63

const nothingElse = { name: '', text: 'select', values: [] }

/** A statement with the parts in its `with` clause: all of them take effect, or none does. */
export function statementOf(
  parts: Part[],
  {
    name: own,
    text,
    values: first,
  }: { name: string; text: string; values: Buffer[] } = nothingElse,
): QueryConfig {
  if (parts.length === 0) return { name: own, text, values: first }
  const values = [...first]
  const named = parts.map(({ as, at }) => {
    const part = at(values.length + 1)
    values.push(...part.values)
    return `${as} as (${part.text})`
  })
  const names = [own, ...parts.map(({ as }) => as)].filter(Boolean).join('+')
  const name = names.length > longestName ? hash('sha256', names).slice(0, longestName) : names
  return { name, text: `with ${named.join(', ')} ${text}`, values }
}

export type ElementType = 'text' | 'bigint' | 'integer' | 'boolean' | 'bytea'
export type Element = string | number | boolean | Buffer | null

// Type numbers of pg_type, which never change (src/include/catalog/pg_type.dat).
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
 * A one-dimensional array in Postgres's binary format (array_recv). It has dimensions, a has-nulls flag, the
 * element type, length and lower bound, then each element after its size in bytes. The text format would
 * escape every quote, which for JSON costs more than storing it. A row of 1.5 KB bytea took the process 21 µs and
 * Postgres 51, and takes 8 and 9.
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
