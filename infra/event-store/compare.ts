import pg from 'pg'
import type { Db, Tx } from '../postgres/pool.ts'
import type { Build } from './builds.ts'
import type { ComparedRows, EndedData, Projection } from './projection.ts'

interface DifferentRow {
  /** The build that has the row; the other has none exactly like it. */
  side: 'live' | 'new'
  row: string
}

export interface TableComparison {
  table: string
  rows: number
  equal: boolean
  differences: DifferentRow[]
}

export interface CompareOptions {
  table: string
  live: Build
  next: Build
  /** SQL over the rows `t`: those that do not meet it are not compared. */
  rows?: ComparedRows | undefined
  ended?: EndedData[]
}

/** Two connections that see the same moment. */
export interface Readers {
  ofLive: Db
  ofNext: Db
}

interface ComparedBuilds {
  projection: Projection
  live: Build
  next: Build
  ended: EndedData[]
}

export async function compareBuilds(
  readers: Readers,
  { projection, live, next, ended }: ComparedBuilds,
): Promise<TableComparison[]> {
  const tables: TableComparison[] = []
  for (const table of projection.tables) {
    const rows = projection.comparedRows?.[table]
    if (rows === 'not compared') continue
    tables.push(await compareTable(readers, { table, live, next, rows, ended }))
  }
  return tables
}

const beginReading = 'begin isolation level repeatable read read only'

/** Begins a transaction that sees this moment, and names it for others. */
export async function exportSnapshot(reader: Tx): Promise<string> {
  await reader.query(beginReading)
  const { rows } = await reader.query<{ snapshot: string }>(
    'select pg_export_snapshot() as snapshot',
  )
  const [exported] = rows
  if (!exported) throw new Error('no snapshot was exported')
  return exported.snapshot
}

/** Begins one that sees the moment of the other, which must not have ended. */
export async function useSnapshot(reader: Tx, snapshot: string): Promise<void> {
  await reader.query(`${beginReading}; set transaction snapshot '${snapshot}'`)
}

/** Whether both builds have the same rows, byte for byte, in whatever order they lie on disk. */
export async function compareTable(
  { ofLive, ofNext }: Readers,
  options: CompareOptions,
): Promise<TableComparison> {
  const { table, live, next } = options
  if ((await columns(ofLive, live, table)) !== (await columns(ofNext, next, table))) {
    const differences: DifferentRow[] = [{ side: 'new', row: 'the table has other columns' }]
    return { table, rows: (await digest(ofNext, next, options)).rows, equal: false, differences }
  }
  const [mine, theirs] = await Promise.all([
    digest(ofNext, next, options),
    digest(ofLive, live, options),
  ])
  const equal = theirs.digest === mine.digest
  return {
    table,
    rows: mine.rows,
    equal,
    differences: equal ? [] : await findDifferences(ofNext, options),
  }
}

// The number of rows and the sum of a 64-bit hash of each. A sum does not depend on the order, so nothing is sorted.
async function digest(
  db: Db,
  { schema }: Build,
  options: CompareOptions,
): Promise<{ rows: number; digest: string }> {
  const { table } = options
  const { rows } = await db.query<{ rows: number; digest: string }>(
    `select count(*)::float8 as rows, concat_ws(' ', count(*), sum(hash_record_extended(t, 0)::numeric)) as digest
     from ${schema}.${table} t where ${compared(schema, options)}`,
  )
  const [row] = rows
  if (!row) throw new Error(`no digest of ${schema}.${table}`)
  return row
}

function compared(schema: string, { rows = {}, ended = [] }: CompareOptions): string {
  const always = rows.always?.(schema) ?? 'true'
  if (!rows.ofEnded || ended.length === 0) return always
  const ids = ended.map(({ organization_id }) => pg.escapeLiteral(organization_id))
  return `(${always} and (t.organization_id not in (${ids.join()}) or ${rows.ofEnded(schema)}))`
}

async function columns(db: Db, { schema }: Build, table: string): Promise<string> {
  const { rows } = await db.query<{ columns: string | null }>(
    // Not of information_schema.columns, a view that joins ten catalogues for the same.
    `select string_agg(attname || ' ' || format_type(atttypid, atttypmod), ', ' order by attnum) as columns
     from pg_attribute where attrelid = to_regclass($1) and attnum > 0 and not attisdropped`,
    [`${schema}.${table}`],
  )
  return rows[0]?.columns ?? ''
}

async function findDifferences(db: Db, options: CompareOptions): Promise<DifferentRow[]> {
  const { table, live, next } = options
  const only = (side: string, a: Build, b: Build) =>
    `(select '${side}' as side, t::text as row from (
       select * from ${a.schema}.${table} t where ${compared(a.schema, options)}
       except all select * from ${b.schema}.${table} t where ${compared(b.schema, options)} limit 3) t)`
  const { rows } = await db.query<DifferentRow>(
    `${only('live', live, next)} union all ${only('new', next, live)}`,
  )
  return rows
}
