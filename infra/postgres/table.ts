import {
  arrayLiteral,
  type Column,
  type Cte,
  type Element,
  type ElementType,
  unnest,
} from './arrays.ts'
import type { Db } from './pool.ts'

export interface ColumnDefinition<T> {
  type: ElementType
  /** The column's Postgres type if it isn't an element type. */
  cast?: string
  constraint: string
  /** Returns the SQL to select the column. Needed for a bigint or JSON, which pg would return as text. */
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
  /** Text with byte order, so that paging and "latest" give the same results on every server. */
  id: <T extends string = string>(): ColumnDefinition<T> => ({
    type: 'text',
    constraint: `collate "C" ${notNull}`,
    write: asIs,
  }),
  /** JSON in a text column, because jsonb rejects \u0000, which a page can send. */
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
  textArray: <T extends string = string>(): ColumnDefinition<T[]> => ({
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
  /** Bytes that are read and written as hex. */
  hex: (): ColumnDefinition<string> => ({
    type: 'bytea',
    constraint: notNull,
    read: (sql) => `encode(${sql}, 'hex')`,
    write: (text) => Buffer.from(text, 'hex'),
  }),
}

/** Allows external input in a text column: NUL, which Postgres can't store, is replaced. */
export function untrustedText(text: ColumnDefinition<string>): ColumnDefinition<string> {
  return { ...text, write: replaceNul }
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
  /** The key columns, and all columns, separated by commas. */
  key: string
  names: string
  columns: Column<R>[]
  columnsOf<F extends keyof R>(...fields: F[]): Column<Pick<R, F>>[]
  columnsWithout<F extends keyof R>(...fields: F[]): Column<Pick<R, Exclude<keyof R, F>>>[]
  /** Returns the select list of these fields (default: all), for the table with this alias. */
  select(alias: string, ...fields: (keyof R)[]): string
  selectWithout(alias: string, ...fields: (keyof R)[]): string
}

export type RowOf<T> = T extends Table<infer R> ? R : never

export interface TableOptions<R> {
  key?: (keyof R & string)[]
  /** A generated column: its definition, and the field after whose column it is placed. */
  generated?: { after: keyof R; ddl: string }
  /** Skips the write-ahead log. A crash of Postgres empties the table. */
  unlogged?: boolean
  /** Columns to send in one array (`Column.isPacked`). Set for short values in a wide table. */
  packed?: (keyof R)[]
  /** Storage parameters, such as `fillfactor = 70`. */
  storage?: string
  /** Index definitions: the SQL after `create index on <table>`. */
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
    const line = `${columnName(field)} ${cast} ${constraint}`.trimEnd()
    return generated?.after === field ? [line, generated.ddl] : [line]
  }

  function selectItem(alias: string, field: keyof R): string {
    const { read = (sql) => sql } = definitions[field]
    return `${read(`${alias}.${columnName(field)}`)} as "${String(field)}"`
  }

  const columnFor = <F extends keyof R>(field: F): Column<Pick<R, F>> => ({
    name: columnName(field),
    type: definitions[field].type,
    cast: definitions[field].cast,
    isPacked: packed.includes(field),
    encode: (row) => definitions[field].write(row[field]),
  })

  const keys =
    key ?? fields.filter((field) => definitions[field].constraint.includes('primary key'))
  const lines = [
    ...fields.flatMap(ddlOf),
    ...(key ? [`primary key (${key.map(columnName).join(', ')})`] : []),
  ]
  function fieldsWithout<F extends keyof R>(excluded: F[]) {
    const excludedFields = new Set<keyof R>(excluded)
    return fields.filter((field): field is Exclude<typeof field, F> => !excludedFields.has(field))
  }

  const select = (alias: string, selection: (keyof R)[]) =>
    selection.map((field) => selectItem(alias, field)).join(', ')
  return {
    name,
    ddl: tableDdl(name, lines, options),
    key: keys.map(columnName).join(', '),
    names: fields.map(columnName).join(', '),
    columns: fields.map(columnFor),
    columnsOf: (...selection) => selection.map(columnFor),
    columnsWithout: (...excluded) => fieldsWithout(excluded).map(columnFor),
    select: (alias, ...selection) => select(alias, selection.length > 0 ? selection : fields),
    selectWithout: (alias, ...excluded) => select(alias, fieldsWithout(excluded)),
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

/** Returns the statement that upserts the rows. */
export function saveRows<R>(table: Table<R>, rows: R[]): Cte[] {
  const { columns } = table
  return writeRows(table, {
    as: `save_${identifier(table)}`,
    columns,
    rows,
    conflict: overwrite(table),
  })
}

/**
 * Returns the statement that inserts rows and ignores those whose key exists. With `areNew` the caller guarantees that
 * none exists, which saves the conflict check: a fifth of the time.
 */
export function insertRows<R>(table: Table<R>, rows: R[], { areNew = false } = {}): Cte[] {
  const { columns } = table
  const conflict = areNew ? '' : 'on conflict do nothing'
  return writeRows(table, { as: `insert_${identifier(table)}`, columns, rows, conflict })
}

/** Returns the `on conflict` clause that replaces all columns of a row with the same key. */
export function overwrite({ key, columns }: Pick<Table<never>, 'key' | 'columns'>): string {
  const replaced = columns.filter(({ name }) => !key.split(', ').includes(name))
  return `on conflict (${key}) do update set ${replaced.map(({ name }) => `${name} = excluded.${name}`).join(', ')}`
}

const identifier = ({ name }: TableName) => name.replaceAll('.', '_')

type TableName = Pick<Table<never>, 'name' | 'key'>

interface Insert<R> {
  columns: Column<R>[]
  rows: R[]
  /** The clauses after the rows: `on conflict ...`, `returning ...`. */
  conflict?: string
  /** Writes in key order: statements that lock the same rows in different orders can deadlock. */
  ordered?: boolean
}

/** Returns the insert as a CTE named `as`; none if there are no rows. */
export function writeRows<R>(
  table: TableName,
  { as, ...insert }: Insert<R> & { as: string },
): Cte[] {
  return insert.rows.length === 0 ? [] : [{ as, sql: (first) => insertInto(table, insert, first) }]
}

/** Returns an `insert` with one array parameter per column. */
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

/** Returns the rows whose key is one of `ids`, by id. */
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

/** Replaces NUL, which Postgres can't store in text. */
export function replaceNul(text: string): string {
  return text.replaceAll('\0', '\ufffd')
}

/** Normalizes texts for search: NFC and lower case by JavaScript's rules, because Postgres's depend on the locale. */
export function normalizeForSearch(...parts: (string | null)[]): string {
  return replaceNul(parts.map((part) => part ?? '').join('\n'))
    .normalize('NFC')
    .toLowerCase()
}

/** Returns a LIKE pattern for texts that contain this one, with its wildcards escaped. */
export function containsPattern(text: string): string {
  return `%${normalizeForSearch(text).replace(/[\\%_]/g, '\\$&')}%`
}

/** Returns true for a search that can't match: stored texts have no NUL, and line feeds only separate them. */
export const isUnsearchable = (search: string) => /[\0\n]/.test(search)
