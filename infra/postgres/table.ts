import { type Column, type Element, type ElementType, type Part, unnest } from './arrays.ts'
import type { Db } from './pool.ts'

export interface ColumnDefinition<T> {
  type: ElementType
  constraint: string
  /** What readers cast it to: pg gives a bigint as text, and JSON as text where the column is text. */
  readAs?: 'float8' | 'json'
  name?: string
  write(value: T): Element
}

const notNull = 'not null'
const asIs = <T extends Element>(value: T): Element => value

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
    readAs: 'json',
    write: (value) => JSON.stringify(value),
  }),
  bigint: (): ColumnDefinition<number> => ({
    type: 'bigint',
    constraint: notNull,
    readAs: 'float8',
    write: asIs,
  }),
  integer: (): ColumnDefinition<number> => ({ type: 'integer', constraint: notNull, write: asIs }),
  boolean: (): ColumnDefinition<boolean> => ({ type: 'boolean', constraint: notNull, write: asIs }),
  bytea: (): ColumnDefinition<Buffer> => ({ type: 'bytea', constraint: notNull, write: asIs }),
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

export interface Table<R> {
  name: string
  ddl: string
  key: string
  columns: Column<R>[]
  columnsWithout(...fields: (keyof R)[]): Column<R>[]
  /** What a query selects to get the row's fields, or only these, from the table named `alias`. */
  select(alias: string, ...fields: (keyof R)[]): string
  selectWithout(alias: string, ...fields: (keyof R)[]): string
}

export type RowOf<T> = T extends Table<infer R> ? R : never

export interface TableOptions<R> {
  key?: (keyof R & string)[]
  /** A column that Postgres computes: its definition, and the field whose column it follows. */
  generated?: { after: keyof R; ddl: string }
}

export function table<R extends object>(
  name: string,
  definitions: { [K in keyof R]: ColumnDefinition<R[K]> },
  { key, generated }: TableOptions<R> = {},
): Table<R> {
  const fields = keysOf(definitions)
  const columnName = (field: keyof R) => definitions[field].name ?? String(field)

  function ddlOf(field: keyof R): string[] {
    const { type, constraint } = definitions[field]
    const own = `${columnName(field)} ${type} ${constraint}`.trimEnd()
    return generated?.after === field ? [own, generated.ddl] : [own]
  }

  function selected(alias: string, field: keyof R): string {
    const { readAs, name: column } = definitions[field]
    const cast = readAs ? `::${readAs}` : ''
    return `${alias}.${columnName(field)}${cast}${column ? ` as ${String(field)}` : ''}`
  }

  const written = (field: keyof R): Column<R> => ({
    name: columnName(field),
    type: definitions[field].type,
    of: (row) => definitions[field].write(row[field]),
  })

  const keys = key ?? fields.filter((field) => definitions[field].constraint.includes('primary key'))
  const lines = [...fields.flatMap(ddlOf), ...(key ? [`primary key (${key.join(', ')})`] : [])]
  const without = (others: (keyof R)[]) => fields.filter((field) => !others.includes(field))
  const select = (alias: string, some: (keyof R)[]) => some.map((field) => selected(alias, field)).join(', ')
  return {
    name,
    ddl: `create table ${name} (\n  ${lines.join(',\n  ')}\n);\n`,
    key: keys.map(columnName).join(', '),
    columns: fields.map(written),
    columnsWithout: (...others) => without(others).map(written),
    select: (alias, ...some) => select(alias, some.length > 0 ? some : fields),
    selectWithout: (alias, ...others) => select(alias, without(others)),
  }
}

function keysOf<T extends object>(object: T): Extract<keyof T, string>[] {
  const keys: Extract<keyof T, string>[] = []
  for (const key in object) keys.push(key)
  return keys
}

/** Writes the rows, and replaces those that have their keys. */
export function saveRows<R>({ name: table, key, columns }: Table<R>, rows: R[]): Part[] {
  const others = columns.filter(({ name }) => !key.split(', ').includes(name))
  const replaced = others.map(({ name }) => `${name} = excluded.${name}`).join(', ')
  return write(`save_${table}`, {
    ...{ table, columns, rows },
    conflict: `on conflict (${key}) do update set ${replaced}`,
  })
}

/** Writes the rows whose key is new. */
export function insertRows<R>({ name: table, columns }: Table<R>, rows: R[]): Part[] {
  return write(`insert_${table}`, { table, columns, rows, conflict: 'on conflict do nothing' })
}

interface Written<R> {
  table: string
  columns: Column<R>[]
  rows: R[]
  conflict: string
}

function write<R>(as: string, { table, columns, rows, conflict }: Written<R>): Part[] {
  if (rows.length === 0) return []
  const at = (first: number) => {
    const { names, source, values } = unnest(columns, rows, first)
    return { text: `insert into ${table} (${names}) select * from ${source} ${conflict}`, values }
  }
  return [{ as, at }]
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

/** What a search compares: lower case by JavaScript's rules on both sides, since Postgres's depend on its locale. */
export function searchable(...parts: (string | null)[]): string {
  return storable(parts.map((part) => part ?? '').join('\n')).toLowerCase()
}

/** A LIKE pattern for "contains the text", its wildcards taken literally. */
export function containsPattern(text: string): string {
  return `%${searchable(text).replace(/[\\%_]/g, '\\$&')}%`
}

/** A NUL is in nothing, and Postgres takes none. A line feed is only between the texts that are searched. */
export const isUnsearchable = (search: string) => /[\0\n]/.test(search)
