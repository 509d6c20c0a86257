import type pg from 'pg'
import type { Position } from '../log/port.ts'
import { ensureTables } from '../postgres/ensure-tables.ts'
import { type Db, lockKey, type Tx, transaction } from '../postgres/pool.ts'
import type { Projection } from './projection.ts'

const baseTables = `
  create extension if not exists pg_trgm schema tidegate;
  create schema if not exists read;
  create table if not exists tidegate.projection_builds (
    projection text not null,
    build integer not null,
    version integer not null,
    status text not null check (status in ('building', 'live', 'retired')),
    schema_name text not null,
    created_at timestamptz not null default now(),
    primary key (projection, build)
  );
  create unique index if not exists one_live_build on tidegate.projection_builds (projection)
    where status = 'live';
  create table if not exists tidegate.projection_offsets (
    projection text not null,
    build integer not null,
    topic text not null,
    partition integer not null,
    next_offset bigint not null,
    primary key (projection, build, topic, partition)
  ) with (fillfactor = 50);
  create table if not exists tidegate.erased_sessions (
    projection text not null,
    build integer not null,
    session_id text collate "C" not null,
    primary key (projection, build, session_id)
  );
`

/**
 * Makes what every projection needs and the first build of each. Any number of processes may run it at once.
 * A live build whose version is not its projection's must be rebuilt before runners go on.
 */
export function migrate(pool: pg.Pool, projections: Projection[]): Promise<Build[]> {
  return transaction(pool, async (tx) => {
    // Its lock lasts to the end of the transaction: the first builds are made by one process, too.
    await ensureTables(tx, { name: 'projections', table: 'tidegate.projection_builds', ddl: baseTables })
    const builds: Build[] = []
    for (const projection of projections) builds.push(await firstBuild(tx, projection))
    return builds
  })
}

async function firstBuild(tx: Tx, projection: Projection): Promise<Build> {
  const live = await liveBuild(tx, projection.name)
  if (live) return live
  const build = await createBuild(tx, projection, 'building')
  await createIndexes(tx, projection, build)
  await makeLive(tx, projection, build)
  return { ...build, status: 'live' }
}

/** One set of a projection's tables, in a Postgres schema of its own. At most one build of a projection is live. */
export interface Build {
  projection: string
  build: number
  version: number
  status: 'building' | 'live' | 'retired'
  schema: string
}

const buildColumns = `projection, build, version, status, schema_name as schema`

export async function liveBuild(db: Db, projection: string): Promise<Build | undefined> {
  const { rows } = await db.query<Build>(
    `select ${buildColumns} from tidegate.projection_builds where projection = $1 and status = 'live'`,
    [projection],
  )
  return rows[0]
}

/**
 * The lock that those who apply events to the build hold shared. A switch of builds takes it alone; all live
 * builds of a projection have one lock. Making the indexes of a new build takes it alone too.
 */
export function buildLock({ projection, schema, status }: Build): string {
  return lockKey(status === 'live' ? `tidegate:projection:${projection}` : `tidegate:build:${schema}`)
}

export async function createBuild(tx: Tx, projection: Projection, status: Build['status']): Promise<Build> {
  const { rows } = await tx.query<Build>(
    `insert into tidegate.projection_builds (projection, build, version, status, schema_name)
     select $1, next, $2, $3, $1 || '_b' || next
     from (select coalesce(max(build), 0) + 1 as next from tidegate.projection_builds where projection = $1) as latest
     returning ${buildColumns}`,
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
  // One after the other: a single statement would meet the rows as they lie on disk, and two would be live.
  await tx.query(
    `update tidegate.projection_builds set status = 'retired' where projection = $1 and status = 'live'`,
    [build.projection],
  )
  await tx.query(
    `update tidegate.projection_builds set status = 'live' where projection = $1 and build = $2`,
    [build.projection, build.build],
  )
  for (const table of projection.tables) await pointView(tx, `read.${table}`, `${build.schema}.${table}`)
}

// Views that others made over it, and rights on it, stay. Throws what is in the way where columns went.
async function pointView(tx: Tx, view: string, table: string): Promise<void> {
  await tx.query('savepoint before_view')
  try {
    await tx.query(`create or replace view ${view} as select * from ${table}`)
  } catch (error) {
    if (!isOtherColumns(error)) throw error
    await tx.query('rollback to savepoint before_view')
    await replaceView(tx, view, table)
  }
  await tx.query('release savepoint before_view')
}

// Postgres replaces a view only where its columns stay and new ones come last.
async function replaceView(tx: Tx, view: string, table: string): Promise<void> {
  const { rows } = await tx.query<{ grants: string }>(
    `select format('grant %s on ${view} to %s', string_agg(privilege_type, ', '),
       case when grantee = 0 then 'public' else quote_ident(pg_get_userbyid(grantee)) end) as grants
     from pg_class, aclexplode(relacl) where oid = $1::regclass and grantee <> relowner group by grantee`,
    [view],
  )
  await tx.query(`drop view ${view}; create view ${view} as select * from ${table}`).catch((cause) => {
    throw new Error(
      `${view} gets other columns. Drop what depends on it, and make it anew: ${cause.detail}`,
      {
        cause,
      },
    )
  })
  for (const { grants } of rows) await tx.query(grants)
}

// invalid_table_definition.
const isOtherColumns = (error: unknown) => error instanceof Error && 'code' in error && error.code === '42P16'

/** Drops the build's tables and offsets; its record stays, so that its number is not used again. */
export async function dropBuild(tx: Tx, build: Build): Promise<void> {
  await tx.query(`drop schema if exists ${build.schema} cascade`)
  await tx.query(`delete from tidegate.projection_offsets where projection = $1 and build = $2`, [
    build.projection,
    build.build,
  ])
  await tx.query(`delete from tidegate.erased_sessions where projection = $1 and build = $2`, [
    build.projection,
    build.build,
  ])
  await tx.query(
    `update tidegate.projection_builds set status = 'retired' where projection = $1 and build = $2`,
    [build.projection, build.build],
  )
}

export async function buildOffsets(db: Db, { projection, build }: Build): Promise<Position[]> {
  const { rows } = await db.query<Position>(
    `select topic, partition, next_offset::float8 as "offset" from tidegate.projection_offsets
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

export async function openPartition(
  db: Db,
  { projection, build }: Build,
  { topic, partition }: Omit<Position, 'offset'>,
): Promise<number> {
  const values = [projection, build, topic, partition]
  await db.query(
    `insert into tidegate.projection_offsets (projection, build, topic, partition, next_offset)
     values ($1, $2, $3, $4, 0) on conflict do nothing`,
    values,
  )
  const { rows } = await db.query<{ next: number }>(
    `select next_offset::float8 as next from tidegate.projection_offsets
     where projection = $1 and build = $2 and topic = $3 and partition = $4`,
    values,
  )
  return rows[0]?.next ?? 0
}

export async function findBuild(db: Db, projection: Projection): Promise<Build> {
  const build = await liveBuild(db, projection.name)
  if (build?.version === projection.version) return build
  throw new Error(
    `projection ${projection.name}: the live build has version ${build?.version ?? 'none'}, this program has ` +
      `${projection.version}; run "tidegate rebuild ${projection.name}"`,
  )
}
