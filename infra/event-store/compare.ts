import pg from 'pg'
import type { Db, Tx } from '../postgres/pool.ts'
import type { Build } from './builds.ts'
import type { ComparedRows, Projection, RetentionCutoffs } from './projection.ts'

interface DifferentRow {
  /** The only build that has the row. */
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
  /** The rows to compare. Default: all. */
  rows?: ComparedRows | undefined
  cutoffs?: RetentionCutoffs[]
}

/** Two connections with the same snapshot, so that both builds can be read at once. */
export interface Readers {
  liveDb: Db
  nextDb: Db
}

interface ComparedBuilds {
  projection: Projection
  live: Build
  next: Build
  cutoffs: RetentionCutoffs[]
}

export async function compareBuilds(
  readers: Readers,
  { projection, live, next, cutoffs }: ComparedBuilds,
): Promise<TableComparison[]> {
  const tables: TableComparison[] = []
  for (const table of projection.tables) {
    const rows = projection.comparedRows?.[table]
    if (rows === 'not compared') continue
    tables.push(await compareTable(readers, { table, live, next, rows, cutoffs }))
  }
  return tables
}

const beginReadOnly = 'begin isolation level repeatable read read only'

/** Begins a transaction and returns its snapshot's id. */
export async function beginSnapshot(reader: Tx): Promise<string> {
  await reader.query(beginReadOnly)
  const { rows } = await reader.query<{ snapshot: string }>(
    'select pg_export_snapshot() as snapshot',
  )
  const [row] = rows
  if (!row) throw new Error('no snapshot was exported')
  return row.snapshot
}

/** Begins a transaction with the snapshot of another one, which must still be open. */
export async function joinSnapshot(reader: Tx, snapshot: string): Promise<void> {
  await reader.query(`${beginReadOnly}; set transaction snapshot '${snapshot}'`)
}

/** Compares the table's rows in both builds byte for byte, in any order. */
export async function compareTable(
  { liveDb, nextDb }: Readers,
  options: CompareOptions,
): Promise<TableComparison> {
  const { table, live, next } = options
  if ((await columnsOf(liveDb, live, table)) !== (await columnsOf(nextDb, next, table))) {
    const differences: DifferentRow[] = [{ side: 'new', row: 'the table has other columns' }]
    return { table, rows: (await digest(nextDb, next, options)).rows, equal: false, differences }
  }
  const [nextDigest, liveDigest] = await Promise.all([
    digest(nextDb, next, options),
    digest(liveDb, live, options),
  ])
  const equal = liveDigest.digest === nextDigest.digest
  return {
    table,
    rows: nextDigest.rows,
    equal,
    differences: equal ? [] : await findDifferences(nextDb, options),
  }
}

// Returns the number of rows and the sum of their 64-bit hashes, which needs no sorting.
async function digest(
  db: Db,
  { schema }: Build,
  options: CompareOptions,
): Promise<{ rows: number; digest: string }> {
  const { table } = options
  const { rows } = await db.query<{ rows: number; digest: string }>(
    `select count(*)::float8 as rows, concat_ws(' ', count(*), sum(hash_record_extended(t, 0)::numeric)) as digest
     from ${schema}.${table} t where ${rowFilter(schema, options)}`,
  )
  const [row] = rows
  if (!row) throw new Error(`no digest of ${schema}.${table}`)
  return row
}

function rowFilter(schema: string, { rows = {}, cutoffs = [] }: CompareOptions): string {
  const always = rows.always?.(schema) ?? 'true'
  if (!rows.whenDataExpired || cutoffs.length === 0) return always
  const ids = cutoffs.map(({ organization_id }) => pg.escapeLiteral(organization_id))
  return `(${always} and (t.organization_id not in (${ids.join()}) or ${rows.whenDataExpired(schema)}))`
}

async function columnsOf(db: Db, { schema }: Build, table: string): Promise<string> {
  const { rows } = await db.query<{ columns: string | null }>(
    // Faster than information_schema.columns, which joins ten tables.
    `select string_agg(attname || ' ' || format_type(atttypid, atttypmod), ', ' order by attnum) as columns
     from pg_attribute where attrelid = to_regclass($1) and attnum > 0 and not attisdropped`,
    [`${schema}.${table}`],
  )
  return rows[0]?.columns ?? ''
}

async function findDifferences(db: Db, options: CompareOptions): Promise<DifferentRow[]> {
  const { table, live, next } = options
  const onlyIn = (side: string, a: Build, b: Build) =>
    `(select '${side}' as side, t::text as row from (
       select * from ${a.schema}.${table} t where ${rowFilter(a.schema, options)}
       except all select * from ${b.schema}.${table} t where ${rowFilter(b.schema, options)} limit 3) t)`
  const { rows } = await db.query<DifferentRow>(
    `${onlyIn('live', live, next)} union all ${onlyIn('new', next, live)}`,
  )
  return rows
}
