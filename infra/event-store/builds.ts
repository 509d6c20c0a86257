import type pg from 'pg'
import type { Position, Topic } from '../log/port.ts'
import type { Part } from '../postgres/arrays.ts'
import { ddlOf, type Migrations, runMigrations } from '../postgres/migrations.ts'
import { type Db, lockKey, type Tx, transaction } from '../postgres/pool.ts'
import { column, constrained, type RowOf, saveRows, table } from '../postgres/table.ts'
import { systemCode } from '../thrown.ts'
import type { Projection } from './projection.ts'

/** The schema that has the bookkeeping of read models. Views of users have one each, which they may write. */
export const ownHome = 'tidegate'

const createBookkeeping = (home: string) => ({
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

const ofReadModels = createBookkeeping(ownHome)

function bookkeepingDdl(home: string): string {
  const { builds, offsets, erasedSessions } = createBookkeeping(home)
  return `${ddlOf(builds, offsets, erasedSessions)}
    create unique index one_live_build on ${home}.projection_builds (projection) where status = 'live'`
}

const buildMigrations: Migrations = {
  name: 'projections',
  create: `create extension if not exists pg_trgm schema tidegate;
    create schema if not exists read;
    ${bookkeepingDdl(ownHome)}`,
}

/**
 * Makes the home of a projection that has one of its own, and its build there. Tables of another version are dropped, with
 * all that depends on them: then it returns that version. Nobody else may fill them.
 */
export function migrateHome(pool: pg.Pool, projection: Projection): Promise<number | undefined> {
  const home = homeOf(projection)
  return transaction(pool, async (tx) => {
    await runMigrations(tx, [{ name: 'projections', schema: home, create: bookkeepingDdl(home) }])
    const live = await liveBuild(tx, projection.name, home)
    if (live?.version === projection.version) return undefined
    if (live) await dropBuild(tx, live)
    await firstBuild(tx, projection)
    return live?.version
  })
}

const homeOf = ({ home = ownHome }: Pick<Projection, 'home'>): string => home

/**
 * Makes what every projection needs and the first build of each. Any number of processes may run it at once.
 * A live build whose version is not its projection's must be rebuilt before runners go on.
 */
export function migrate(pool: pg.Pool, projections: Projection[]): Promise<Build[]> {
  return transaction(pool, async (tx) => {
    // Its lock lasts to the end of the transaction: the first builds are made by one process, too.
    const own = projections.flatMap(({ migrations }) => migrations ?? [])
    await runMigrations(tx, [buildMigrations, ...own])
    const builds: Build[] = []
    for (const projection of projections) builds.push(await firstBuild(tx, projection))
    return builds
  })
}

async function firstBuild(tx: Tx, projection: Projection): Promise<Build> {
  const live = await liveBuild(tx, projection.name, homeOf(projection))
  if (live) return live
  const build = await createBuild(tx, projection, 'building')
  await createIndexes(tx, projection, build)
  await makeLive(tx, projection, build)
  return { ...build, status: 'live' }
}

/** One set of a projection's tables, in a Postgres schema of its own. At most one build of a projection is live. */
export type Build = RowOf<typeof ofReadModels.builds> & { home: string }

const buildColumns = (home: string): string =>
  `${ofReadModels.builds.select('projection_builds')}, '${home}' as home`

export async function liveBuild(
  db: Db,
  projection: string,
  home = ownHome,
): Promise<Build | undefined> {
  const { rows } = await db.query<Build>(
    `select ${buildColumns(home)} from ${home}.projection_builds where projection = $1 and status = 'live'`,
    [projection],
  )
  return rows[0]
}

/** Builds that a killed rebuild has left: one that it was filling, or an old one that it had not dropped yet. */
export async function findLeftBuilds(db: Db, projection: string): Promise<Build[]> {
  const { rows } = await db.query<Build>(
    `select ${buildColumns(ownHome)} from ${ownHome}.projection_builds
     where projection = $1 and (status = 'building' or status = 'retired' and to_regnamespace(schema_name) is not null)`,
    [projection],
  )
  return rows
}

/**
 * The lock that those who apply events to the build hold shared. A switch of builds takes it alone; all live
 * builds of a projection have one lock. Making the indexes of a new build takes it alone too.
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
  await tx.query(`create schema ${build.schema}; ${useSchema(build)}; ${projection.ddl}`)
  return build
}

export function useSchema({ schema }: Build): string {
  return `set local search_path = ${schema}, public`
}

export async function createIndexes(tx: Tx, projection: Projection, build: Build): Promise<void> {
  await tx.query(useSchema(build))
  await tx.query(useExtension)
  await tx.query(projection.indexes)
}

// Wherever the owner of the database has put it: its operators are found by the search path.
const useExtension = `
  select set_config('search_path', concat_ws(', ', current_setting('search_path'), quote_ident(nspname)), true)
  from pg_extension join pg_namespace n on n.oid = extnamespace where extname = 'pg_trgm'`

export async function makeLive(tx: Tx, projection: Projection, build: Build): Promise<void> {
  const { home } = build
  const readers = home === ownHome ? 'read' : home
  if (home !== ownHome) await tx.query(useSchema(build))
  // One after the other: a single statement would meet the rows as they lie on disk, and two would be live.
  await tx.query(
    `update ${home}.projection_builds set status = 'retired' where projection = $1 and status = 'live'`,
    [build.projection],
  )
  await tx.query(
    `update ${home}.projection_builds set status = 'live' where projection = $1 and build = $2`,
    [build.projection, build.build],
  )
  await pointViews(tx, [
    ...projection.tables.map((table) => ({
      view: `${readers}.${table}`,
      definition: `as select * from ${build.schema}.${table}`,
    })),
    ...Object.entries(projection.views ?? {}).map(([name, selectOver]) => ({
      view: `${readers}.${name}`,
      definition: `with (security_barrier) as ${selectOver(build.schema)}`,
    })),
  ])
}

interface View {
  view: string
  definition: string
}

// All in one round trip, because a reader that holds one of them and waits for another is in the way. Views that others
// made over them, and rights on them, stay. Throws what is in the way where columns went.
async function pointViews(tx: Tx, views: View[]): Promise<void> {
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
    const [only, ...others] = views
    if (only && others.length === 0) await replaceView(tx, only)
    else for (const one of views) await pointViews(tx, [one])
  }
  await tx.query('release savepoint before_views')
}

// Postgres replaces a view only where its columns stay and new ones come last.
async function replaceView(tx: Tx, { view, definition }: View): Promise<void> {
  const { rows } = await tx.query<{ grants: string }>(
    `select format('grant %s on ${view} to %s', string_agg(privilege_type, ', '),
       case when grantee = 0 then 'public' else quote_ident(pg_get_userbyid(grantee)) end) as grants
     from pg_class, aclexplode(relacl) where oid = $1::regclass and grantee <> relowner group by grantee`,
    [view],
  )
  await tx.query(`drop view ${view}; create view ${view} ${definition}`).catch((cause) => {
    throw new Error(
      `${view} gets other columns. Drop what depends on it, and make it anew: ${cause.detail}`,
      {
        cause,
      },
    )
  })
  for (const { grants } of rows) await tx.query(grants)
}

/** Drops the build's tables and offsets; its record stays, so that its number is not used again. */
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

export async function buildOffsets(
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

export async function liveOffsets(db: Db, projection: string): Promise<Position[]> {
  const { rows } = await db.query<Position>({
    name: 'live-offsets',
    text: `select topic, partition, next_offset::float8 as "offset"
           from tidegate.projection_offsets join tidegate.projection_builds using (projection, build)
           where projection = $1 and status = 'live'`,
    values: [projection],
  })
  return rows
}

/** Writes where the build goes on in each partition. */
export function saveBuildOffsets({ home, projection, build }: Build, next: Position[]): Part[] {
  const rows = next.map(({ offset: next_offset, ...place }) => ({
    projection,
    build,
    ...place,
    next_offset,
  }))
  const { offsets } = home === ownHome ? ofReadModels : createBookkeeping(home)
  return saveRows(offsets, rows)
}

/**
 * Returns where the build goes on in the partition, as it was stored. Stores the first record that still exists in its
 * place where that is later, because what precedes it has expired.
 */
export async function openPartition(
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

/** Makes the views of users read the topic again. Records that they have applied change nothing then. */
export async function rereadTopic(db: Db, topic: Topic): Promise<void> {
  const { rows } = await db.query<{ home: string }>(
    `select quote_ident(nspname) as home from pg_class c join pg_namespace n on n.oid = relnamespace
     where relname = 'projection_offsets' and nspname like 'view\\_%'`,
  )
  for (const { home } of rows)
    await db.query(`delete from ${home}.projection_offsets where topic = $1`, [topic])
}

export async function findBuild(db: Db, projection: Projection): Promise<Build> {
  const build = await liveBuild(db, projection.name, homeOf(projection))
  if (build?.version === projection.version) return build
  throw new Error(
    `projection ${projection.name}: the live build has version ${build?.version ?? 'none'}, this program has ` +
      `${projection.version}; run "tidegate rebuild ${projection.name}"`,
  )
}
