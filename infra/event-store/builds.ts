import type pg from 'pg'
import type { Position, Topic } from '../log/port.ts'
import type { Cte } from '../postgres/arrays.ts'
import { ddlOf, type Migrations, runMigrations } from '../postgres/migrations.ts'
import { type Db, lockKey, type Tx, transaction } from '../postgres/pool.ts'
import { column, constrained, type RowOf, saveRows, table } from '../postgres/table.ts'
import { systemCode } from '../thrown.ts'
import type { Projection } from './projection.ts'

/**
 * A projection's home is the schema with its bookkeeping: builds, offsets and erased sessions. Each view of a user has
 * a home of its own, which the user's database role may write.
 */
export const defaultHome = 'tidegate'

const bookkeepingTables = (home: string) => ({
  builds: table(
    `${home}.projection_builds`,
    {
      projection: column.text(),
      build: column.integer(),
      version: column.integer(),
      status: constrained(
        column.text<'building' | 'live' | 'retired'>(),
        "check (status in ('building', 'live', 'retired'))",
      ),
      schema: { ...column.text(), name: 'schema_name' },
    },
    { key: ['projection', 'build'] },
  ),
  offsets: table(
    `${home}.projection_offsets`,
    {
      projection: column.text(),
      build: column.integer(),
      topic: column.text(),
      partition: column.integer(),
      next_offset: column.bigint(),
    },
    { key: ['projection', 'build', 'topic', 'partition'], storage: 'fillfactor = 50' },
  ),
  erasedSessions: table(
    `${home}.erased_sessions`,
    { projection: column.text(), build: column.integer(), session_id: column.id() },
    { key: ['projection', 'build', 'session_id'] },
  ),
})

const defaultTables = bookkeepingTables(defaultHome)

function bookkeepingDdl(home: string): string {
  const { builds, offsets, erasedSessions } = bookkeepingTables(home)
  return `${ddlOf(builds, offsets, erasedSessions)}
    create unique index one_live_build on ${home}.projection_builds (projection) where status = 'live'`
}

const buildMigrations: Migrations = {
  name: 'projections',
  create: `create extension if not exists pg_trgm schema tidegate;
    create schema if not exists read;
    ${bookkeepingDdl(defaultHome)}`,
}

/**
 * Creates the home of a user's view and its live build. Drops a build of another version, with everything that depends
 * on it, and returns that version; else undefined. The caller must be the only process that fills the build.
 */
export function migrateHome(pool: pg.Pool, projection: Projection): Promise<number | undefined> {
  const home = homeOf(projection)
  return transaction(pool, async (tx) => {
    await runMigrations(tx, [{ name: 'projections', schema: home, create: bookkeepingDdl(home) }])
    const live = await findLiveBuild(tx, projection.name, home)
    if (live?.version === projection.version) return undefined
    if (live) await dropBuild(tx, live)
    await ensureLiveBuild(tx, projection)
    return live?.version
  })
}

const homeOf = ({ home = defaultHome }: Pick<Projection, 'home'>): string => home

/**
 * Creates the bookkeeping tables and the first build of each projection. Any number of processes may run it at once.
 * A live build of another version than its projection must be rebuilt before its runner can continue.
 */
export function migrate(pool: pg.Pool, projections: Projection[]): Promise<Build[]> {
  return transaction(pool, async (tx) => {
    // runMigrations holds its lock until the transaction ends, so only one process creates the first builds.
    const projectionMigrations = projections.flatMap(({ migrations }) => migrations ?? [])
    await runMigrations(tx, [buildMigrations, ...projectionMigrations])
    const builds: Build[] = []
    for (const projection of projections) builds.push(await ensureLiveBuild(tx, projection))
    return builds
  })
}

async function ensureLiveBuild(tx: Tx, projection: Projection): Promise<Build> {
  const live = await findLiveBuild(tx, projection.name, homeOf(projection))
  if (live) return live
  const build = await createBuild(tx, projection, 'building')
  await createIndexes(tx, projection, build)
  await makeLive(tx, projection, build)
  return { ...build, status: 'live' }
}

/** A set of a projection's tables, in a Postgres schema of its own. At most one build of a projection is live. */
export type Build = RowOf<typeof defaultTables.builds> & { home: string }

const buildColumns = (home: string): string =>
  `${defaultTables.builds.select('projection_builds')}, '${home}' as home`

export async function findLiveBuild(
  db: Db,
  projection: string,
  home = defaultHome,
): Promise<Build | undefined> {
  const { rows } = await db.query<Build>(
    `select ${buildColumns(home)} from ${home}.projection_builds where projection = $1 and status = 'live'`,
    [projection],
  )
  return rows[0]
}

/** Returns the builds of a killed rebuild: one that it was filling, or an old one that it had not dropped yet. */
export async function findUnfinishedBuilds(db: Db, projection: string): Promise<Build[]> {
  const { rows } = await db.query<Build>(
    `select ${buildColumns(defaultHome)} from ${defaultHome}.projection_builds
     where projection = $1 and (status = 'building' or status = 'retired' and to_regnamespace(schema_name) is not null)`,
    [projection],
  )
  return rows
}

/**
 * Returns the key of the build's advisory lock. Transactions that apply events hold it shared; a switch of builds and
 * the creation of indexes take it exclusively. All live builds of a projection share one lock.
 */
export function buildLock({ projection, schema, status }: Build): string {
  return lockKey(
    status === 'live' ? `tidegate:projection:${projection}` : `tidegate:build:${schema}`,
  )
}

export async function createBuild(
  tx: Tx,
  projection: Projection,
  status: Build['status'],
): Promise<Build> {
  const home = homeOf(projection)
  const { rows } = await tx.query<Build>(
    `insert into ${home}.projection_builds (projection, build, version, status, schema_name)
     select $1, next, $2, $3, $1 || '_b' || next
     from (select coalesce(max(build), 0) + 1 as next from ${home}.projection_builds where projection = $1) as latest
     returning ${buildColumns(home)}`,
    [projection.name, projection.version, status],
  )
  const [build] = rows
  if (!build) throw new Error(`no build was recorded for ${projection.name}`)
  await tx.query(`create schema ${build.schema}; ${searchPath(build)}; ${projection.ddl}`)
  return build
}

export function searchPath({ schema }: Build): string {
  return `set local search_path = ${schema}, public`
}

export async function createIndexes(tx: Tx, projection: Projection, build: Build): Promise<void> {
  await tx.query(searchPath(build))
  await tx.query(addTrigramSchema)
  await tx.query(projection.indexes)
}

// Adds the schema of pg_trgm, which may be any, to the search path: its operators are looked up there.
const addTrigramSchema = `
  select set_config('search_path', concat_ws(', ', current_setting('search_path'), quote_ident(nspname)), true)
  from pg_extension join pg_namespace n on n.oid = extnamespace where extname = 'pg_trgm'`

/** Retires the live build, makes this one live and points the readers' views to it. */
export async function makeLive(tx: Tx, projection: Projection, build: Build): Promise<void> {
  const { home } = build
  const viewSchema = home === defaultHome ? 'read' : home
  if (home !== defaultHome) await tx.query(searchPath(build))
  // Two statements: a single one updates the rows in any order, and two live builds would violate the unique index.
  await tx.query(
    `update ${home}.projection_builds set status = 'retired' where projection = $1 and status = 'live'`,
    [build.projection],
  )
  await tx.query(
    `update ${home}.projection_builds set status = 'live' where projection = $1 and build = $2`,
    [build.projection, build.build],
  )
  await replaceViews(tx, [
    ...projection.tables.map((table) => ({
      view: `${viewSchema}.${table}`,
      definition: `as select * from ${build.schema}.${table}`,
    })),
    ...Object.entries(projection.views ?? {}).map(([name, selectFrom]) => ({
      view: `${viewSchema}.${name}`,
      definition: `with (security_barrier) as ${selectFrom(build.schema)}`,
    })),
  ])
}

interface View {
  view: string
  definition: string
}

// Replaces all views in one round trip, because a reader that locks one of them while waiting for another blocks it.
// Grants and dependent views are kept. Throws if a column was removed from a view that others depend on.
async function replaceViews(tx: Tx, views: View[]): Promise<void> {
  await tx.query('savepoint before_views')
  try {
    await tx.query(
      views
        .map(({ view, definition }) => `create or replace view ${view} ${definition}`)
        .join('; '),
    )
  } catch (error) {
    // 42P16: invalid_table_definition.
    if (systemCode(error) !== '42P16') throw error
    await tx.query('rollback to savepoint before_views')
    const [first, ...rest] = views
    if (first && rest.length === 0) await recreateView(tx, first)
    else for (const view of views) await replaceViews(tx, [view])
  }
  await tx.query('release savepoint before_views')
}

// Drops and creates the view, and restores its grants: Postgres can only replace a view by appending columns.
async function recreateView(tx: Tx, { view, definition }: View): Promise<void> {
  const { rows } = await tx.query<{ grants: string }>(
    `select format('grant %s on ${view} to %s', string_agg(privilege_type, ', '),
       case when grantee = 0 then 'public' else quote_ident(pg_get_userbyid(grantee)) end) as grants
     from pg_class, aclexplode(relacl) where oid = $1::regclass and grantee <> relowner group by grantee`,
    [view],
  )
  await tx.query(`drop view ${view}; create view ${view} ${definition}`).catch((cause) => {
    throw new Error(
      `${view} has changed columns. Drop the objects that depend on it, then recreate them: ${cause.detail}`,
      {
        cause,
      },
    )
  })
  for (const { grants } of rows) await tx.query(grants)
}

/** Drops the build's tables and offsets. Keeps its row, so its number isn't reused. */
export async function dropBuild(tx: Tx, build: Build): Promise<void> {
  await tx.query(`drop schema if exists ${build.schema} cascade`)
  await tx.query(
    `delete from ${build.home}.projection_offsets where projection = $1 and build = $2`,
    [build.projection, build.build],
  )
  await tx.query(`delete from ${build.home}.erased_sessions where projection = $1 and build = $2`, [
    build.projection,
    build.build,
  ])
  await tx.query(
    `update ${build.home}.projection_builds set status = 'retired' where projection = $1 and build = $2`,
    [build.projection, build.build],
  )
}

export async function loadBuildOffsets(
  db: Db,
  { home, projection, build }: Build,
): Promise<Position[]> {
  const { rows } = await db.query<Position>(
    `select topic, partition, next_offset::float8 as "offset" from ${home}.projection_offsets
     where projection = $1 and build = $2 order by topic, partition`,
    [projection, build],
  )
  return rows
}

export async function loadLiveOffsets(db: Db, projection: string): Promise<Position[]> {
  const { rows } = await db.query<Position>({
    name: 'live-offsets',
    text: `select topic, partition, next_offset::float8 as "offset"
           from tidegate.projection_offsets join tidegate.projection_builds using (projection, build)
           where projection = $1 and status = 'live'`,
    values: [projection],
  })
  return rows
}

/** Returns the statement that stores the build's next offsets. */
export function saveBuildOffsets({ home, projection, build }: Build, next: Position[]): Cte[] {
  const rows = next.map(({ offset: next_offset, ...place }) => ({
    projection,
    build,
    ...place,
    next_offset,
  }))
  const { offsets } = home === defaultHome ? defaultTables : bookkeepingTables(home)
  return saveRows(offsets, rows)
}

/**
 * Returns the build's stored next offset in the partition, or `first` if none is stored. Raises the stored offset to
 * `first`, the first record that still exists: earlier ones have expired.
 */
export async function initStartOffset(
  db: Db,
  { home, projection, build }: Build,
  { topic, partition, offset: first }: Position,
): Promise<number> {
  const { rows } = await db.query<{ next: number }>(
    `with before as (
       select next_offset from ${home}.projection_offsets
       where projection = $1 and build = $2 and topic = $3 and partition = $4
     )
     insert into ${home}.projection_offsets as o (projection, build, topic, partition, next_offset)
     values ($1, $2, $3, $4, $5) on conflict (projection, build, topic, partition)
     do update set next_offset = greatest(o.next_offset, excluded.next_offset)
     returning coalesce((select next_offset from before), next_offset)::float8 as next`,
    [projection, build, topic, partition, first],
  )
  return rows[0]?.next ?? first
}

/** Makes all users' views read the topic again from its start. They ignore records that they have applied. */
export async function resetViewOffsets(db: Db, topic: Topic): Promise<void> {
  const { rows } = await db.query<{ home: string }>(
    `select quote_ident(nspname) as home from pg_class c join pg_namespace n on n.oid = relnamespace
     where relname = 'projection_offsets' and nspname like 'view\\_%'`,
  )
  for (const { home } of rows)
    await db.query(`delete from ${home}.projection_offsets where topic = $1`, [topic])
}

/** Returns the live build. Throws if it has another version than the projection. */
export async function requireCurrentBuild(db: Db, projection: Projection): Promise<Build> {
  const build = await findLiveBuild(db, projection.name, homeOf(projection))
  if (build?.version === projection.version) return build
  throw new Error(
    `projection ${projection.name}: the live build has version ${build?.version ?? 'none'}, this program has ` +
      `${projection.version}; run "tidegate rebuild ${projection.name}"`,
  )
}
