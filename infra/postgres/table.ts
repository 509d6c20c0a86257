import {
  arrayLiteral,
  type Column,
  type Element,
  type ElementType,
  type Part,
  unnest,
} from './arrays.ts'
import type { Db } from './pool.ts'

export interface ColumnDefinition<T> {
  type: ElementType
  /** The column's type in Postgres where that is no element type. */
  cast?: string
  constraint: string
  /** How readers select it: pg gives a bigint as text, and JSON as text where the column is text. */
  read?(sql: string): string
  name?: string
  write(value: T): Element
}

const notNull = 'not null'
const asIs = <T extends Element>(value: T): Element => value
const castTo = (type: string) => (sql: string) => `${sql}::${type}`

export const column = {
  text: <T extends string = string>(): ColumnDefinition<T> => ({
    type: 'text',
    constraint: notNull,
    write: asIs,
  }),
  /** Compares byte by byte, so that paging and "latest" mean the same on every server. */
  id: <T extends string = string>(): ColumnDefinition<T> => ({
    type: 'text',
    constraint: `collate "C" ${notNull}`,
    write: asIs,
  }),
  /** JSON in a text column, since a jsonb column refuses \u0000, which a page can send. */
  json: <T>(): ColumnDefinition<T> => ({
    type: 'text',
    constraint: notNull,
    read: castTo('json'),
    write: (value) => JSON.stringify(value),
  }),
  bigint: (): ColumnDefinition<number> => ({
    type: 'bigint',
    constraint: notNull,
    read: castTo('float8'),
    write: asIs,
  }),
  integer: (): ColumnDefinition<number> => ({ type: 'integer', constraint: notNull, write: asIs }),
  boolean: (): ColumnDefinition<boolean> => ({ type: 'boolean', constraint: notNull, write: asIs }),
  textArray: (): ColumnDefinition<string[]> => ({
    type: 'text',
    cast: 'text[]',
    constraint: notNull,
    write: arrayLiteral,
  }),
  integerArray: (): ColumnDefinition<number[]> => ({
    type: 'text',
    cast: 'integer[]',
    constraint: notNull,
    write: arrayLiteral,
  }),
  /** An address as text: `203.0.113.9`. */
  address: (): ColumnDefinition<string> => ({
    type: 'text',
    cast: 'inet',
    constraint: notNull,
    read: (sql) => `host(${sql})`,
    write: asIs,
  }),
  bytea: (): ColumnDefinition<Buffer> => ({ type: 'bytea', constraint: notNull, write: asIs }),
  /** Bytes, as hexadecimal text where they are read and written. */
  hex: (): ColumnDefinition<string> => ({
    type: 'bytea',
    constraint: notNull,
    read: (sql) => `encode(${sql}, 'hex')`,
    write: (text) => Buffer.from(text, 'hex'),
  }),
}

/** Text from outside: it may have a NUL, which Postgres cannot store. */
export function foreign(text: ColumnDefinition<string>): ColumnDefinition<string> {
  return { ...text, write: storable }
}

export function nullable<T>(column: ColumnDefinition<T>): ColumnDefinition<T | null> {
  return {
    ...column,
    constraint: column.constraint.replace(notNull, '').trim(),
    write: (value) => (value === null ? null : column.write(value)),
  }
}

export function primaryKey<T>(column: ColumnDefinition<T>, name?: string): ColumnDefinition<T> {
  const constraint = column.constraint.replace(notNull, 'primary key')
  return { ...column, constraint, ...(name === undefined ? {} : { name }) }
}

/** Adds a default or a check: `constrained(column.boolean(), 'default false')`. */
export function constrained<T>(column: ColumnDefinition<T>, sql: string): ColumnDefinition<T> {
  return { ...column, constraint: `${column.constraint} ${sql}` }
}

export interface Table<R> {
  name: string
  ddl: string
  key: string
  /** The columns' names, separated by commas. */
  names: string
  columns: Column<R>[]
  columnsOf<F extends keyof R>(...fields: F[]): Column<Pick<R, F>>[]
  columnsWithout<F extends keyof R>(...fields: F[]): Column<Pick<R, Exclude<keyof R, F>>>[]
  /** What a query selects to get the row's fields, or only these, from the table named `alias`. */
  select(alias: string, ...fields: (keyof R)[]): string
  selectWithout(alias: string, ...fields: (keyof R)[]): string
}

export type RowOf<T> = T extends Table<infer R> ? R : never

export interface TableOptions<R> {
  key?: (keyof R & string)[]
  /** A column that Postgres computes: its definition, and the field whose column it follows. */
  generated?: { after: keyof R; ddl: string }
  /** Nothing of it is in the write-ahead log, so that a crash of Postgres empties it. */
  unlogged?: boolean
  /** Columns that are sent together (`Column.isPacked`): of a wide table those whose values are short. */
  packed?: (keyof R)[]
  /** Storage parameters, such as `fillfactor = 70`. */
  storage?: string
  /** What follows `create index on` and the table's name. */
  indexes?: string[]
}

export function table<R extends object>(
  name: string,
  definitions: { [K in keyof R]: ColumnDefinition<R[K]> },
  options: TableOptions<R> = {},
): Table<R> {
  const { key, generated, packed = [] } = options
  const fields = keysOf(definitions)
  const columnName = (field: keyof R) => definitions[field].name ?? String(field)

  function ddlOf(field: keyof R): string[] {
    const { type, cast = type, constraint } = definitions[field]
    const own = `${columnName(field)} ${cast} ${constraint}`.trimEnd()
    return generated?.after === field ? [own, generated.ddl] : [own]
  }

  function selected(alias: string, field: keyof R): string {
    const { read = (sql) => sql } = definitions[field]
    return `${read(`${alias}.${columnName(field)}`)} as "${String(field)}"`
  }

  const written = <F extends keyof R>(field: F): Column<Pick<R, F>> => ({
    name: columnName(field),
    type: definitions[field].type,
    cast: definitions[field].cast,
    isPacked: packed.includes(field),
    of: (row) => definitions[field].write(row[field]),
  })

  const keys =
    key ?? fields.filter((field) => definitions[field].constraint.includes('primary key'))
  const lines = [
    ...fields.flatMap(ddlOf),
    ...(key ? [`primary key (${key.map(columnName).join(', ')})`] : []),
  ]
  function without<F extends keyof R>(others: F[]) {
    const isOther = new Set<keyof R>(others)
    return fields.filter((field): field is Exclude<typeof field, F> => !isOther.has(field))
  }

  const select = (alias: string, some: (keyof R)[]) =>
    some.map((field) => selected(alias, field)).join(', ')
  return {
    name,
    ddl: tableDdl(name, lines, options),
    key: keys.map(columnName).join(', '),
    names: fields.map(columnName).join(', '),
    columns: fields.map(written),
    columnsOf: (...some) => some.map(written),
    columnsWithout: (...others) => without(others).map(written),
    select: (alias, ...some) => select(alias, some.length > 0 ? some : fields),
    selectWithout: (alias, ...others) => select(alias, without(others)),
  }
}

function tableDdl<R>(
  name: string,
  lines: string[],
  { unlogged, storage, indexes = [] }: TableOptions<R>,
) {
  const kind = unlogged ? 'unlogged table' : 'table'
  const end = storage ? `) with (${storage});` : ');'
  const created = [`create ${kind} ${name} (\n  ${lines.join(',\n  ')}\n${end}\n`]
  return [...created, ...indexes.map((index) => `create index on ${name} ${index};\n`)].join('')
}

export function keysOf<T extends object>(object: T): Extract<keyof T, string>[] {
  const keys: Extract<keyof T, string>[] = []
  for (const key in object) keys.push(key)
  return keys
}

/** Writes the rows, and replaces those that have their keys. */
export function saveRows<R>(table: Table<R>, rows: R[]): Part[] {
  const { columns } = table
  return writeRows(table, {
    as: `save_${identifier(table)}`,
    columns,
    rows,
    conflict: replacing(table),
  })
}

/** Writes the rows whose key is new. `areNew` = the caller knows that all are: to look again takes Postgres a fifth longer. */
export function insertRows<R>(table: Table<R>, rows: R[], { areNew = false } = {}): Part[] {
  const { columns } = table
  const conflict = areNew ? '' : 'on conflict do nothing'
  return writeRows(table, { as: `insert_${identifier(table)}`, columns, rows, conflict })
}

/** The row with the same key gets all other columns of the new one. */
export function replacing({ key, columns }: Pick<Table<never>, 'key' | 'columns'>): string {
  const others = columns.filter(({ name }) => !key.split(', ').includes(name))
  return `on conflict (${key}) do update set ${others.map(({ name }) => `${name} = excluded.${name}`).join(', ')}`
}

const identifier = ({ name }: TableName) => name.replaceAll('.', '_')

type TableName = Pick<Table<never>, 'name' | 'key'>

interface Insert<R> {
  columns: Column<R>[]
  rows: R[]
  /** `on conflict ...`, and what else ends the statement. */
  conflict?: string
  /** Writes in the order of the key, because two that lock the same rows in different orders can deadlock. */
  ordered?: boolean
}

/** `as` names the statement within a `with` clause. */
export function writeRows<R>(
  table: TableName,
  { as, ...insert }: Insert<R> & { as: string },
): Part[] {
  return insert.rows.length === 0 ? [] : [{ as, at: (first) => insertInto(table, insert, first) }]
}

/** An `insert` whose parameters are one array for each column. */
export function insertInto<R>(
  { name, key }: TableName,
  { columns, rows, conflict = '', ordered = false }: Insert<R>,
  firstParameter = 1,
): { text: string; values: Buffer[] } {
  const { names, source, values } = unnest(columns, rows, firstParameter)
  const order = ordered ? `order by ${key}` : ''
  const from = `${source} as incoming (${names}) ${order}`
  return { text: `insert into ${name} (${names}) select * from ${from} ${conflict}`, values }
}

export async function loadRows<K extends string, R extends Record<K, string>>(
  db: Db,
  table: Table<R>,
  { by, ids }: { by: K; ids: string[] },
): Promise<Map<string, R>> {
  if (ids.length === 0) return new Map()
  const { rows } = await db.query<R>({
    name: `load-${table.name}`,
    text: `select ${table.select('t')} from ${table.name} t where t.${table.key} = any($1)`,
    values: [ids],
  })
  return new Map(rows.map((row) => [row[by], row]))
}

export function storable(text: string): string {
  return text.replaceAll('\0', '\ufffd')
}

/**
 * Returns the text that searches compare: NFC and lower case by JavaScript's rules, since Postgres's depend on its locale.
 */
export function searchable(...parts: (string | null)[]): string {
  return storable(parts.map((part) => part ?? '').join('\n'))
    .normalize('NFC')
    .toLowerCase()
}

/** A LIKE pattern for "contains the text", its wildcards taken literally. */
export function containsPattern(text: string): string {
  return `%${searchable(text).replace(/[\\%_]/g, '\\$&')}%`
}

/** A NUL is in nothing, and Postgres takes none. A line feed is only between the texts that are searched. */
export const isUnsearchable = (search: string) => /[\0\n]/.test(search)
