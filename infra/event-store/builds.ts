import type { Position } from '../log/port.ts'
import { lockKey } from '../postgres/advisory-lock.ts'
import type { Db, Tx } from '../postgres/pool.ts'
import type { Projection } from './projection.ts'

/** One set of a projection's tables, in a Postgres schema of its own. At most one build of a projection is live. */
export interface Build {
  projection: string
  build: number
  /** The version of the code that fills it. */
  version: number
  status: 'building' | 'live' | 'retired'
  schema: string
}

const buildColumns = `projection, build, version, status, schema_name as schema`

/** The build that readers see. */
export async function liveBuild(db: Db, projection: string): Promise<Build | undefined> {
  const { rows } = await db.query<Build>(
    `select ${buildColumns} from tidegate.projection_builds where projection = $1 and status = 'live'`,
    [projection],
  )
  return rows[0]
}

/**
 * The lock that whoever applies events to the build holds shared. Alone it is held by a switch of builds (all live
 * builds of a projection have one lock), and while a new build gets its indexes.
 */
export function buildLock({ projection, schema, status }: Build): string {
  return lockKey(status === 'live' ? `tidegate:projection:${projection}` : `tidegate:build:${schema}`)
}

/** A new build with empty tables and without its readers' indexes. */
export async function createBuild(tx: Tx, projection: Projection, status: Build['status']): Promise<Build> {
  const { rows } = await tx.query<Build>(
    `insert into tidegate.projection_builds (projection, build, version, status, schema_name)
     select $1, next, $2, $3, $1 || '_b' || next
     from (select coalesce(max(build), 0) + 1 as next from tidegate.projection_builds where projection = $1)
     returning ${buildColumns}`,
    [projection.name, projection.version, status],
  )
  const [build] = rows
  if (!build) throw new Error(`no build was recorded for ${projection.name}`)
  await tx.query(`create schema ${build.schema}; ${useSchema(build)}; ${projection.ddl}`)
  return build
}

/** Makes the build's tables what unqualified names mean until the transaction ends. */
export function useSchema({ schema }: Build): string {
  return `set local search_path = ${schema}, public`
}

export async function createIndexes(tx: Tx, projection: Projection, build: Build): Promise<void> {
  await tx.query(`${useSchema(build)}; ${projection.indexes}`)
}

/** Makes the build the one that readers see; whatever was live is retired. */
export async function makeLive(tx: Tx, projection: Projection, build: Build): Promise<void> {
  await tx.query(
    `update tidegate.projection_builds set status = case when build = $2 then 'live' else 'retired' end
     where projection = $1 and (build = $2 or status = 'live')`,
    [build.projection, build.build],
  )
  const views = projection.tables.map(
    (table) =>
      `drop view if exists read.${table}; create view read.${table} as select * from ${build.schema}.${table}`,
  )
  await tx.query(views.join('; '))
}

/** Drops the build's tables and offsets; its record stays, so that its number is not used again. */
export async function dropBuild(tx: Tx, build: Build): Promise<void> {
  await tx.query(`drop schema if exists ${build.schema} cascade`)
  await tx.query(`delete from tidegate.projection_offsets where projection = $1 and build = $2`, [
    build.projection,
    build.build,
  ])
  await tx.query(
    `update tidegate.projection_builds set status = 'retired' where projection = $1 and build = $2`,
    [build.projection, build.build],
  )
}

/** The next offset to apply of every partition that the build has met. */
export async function buildOffsets(db: Db, { projection, build }: Build): Promise<Position[]> {
  const { rows } = await db.query<Position>(
    `select topic, partition, next_offset::float8 as "offset" from tidegate.projection_offsets
     where projection = $1 and build = $2 order by topic, partition`,
    [projection, build],
  )
  return rows
}

/** The build's next offset in the partition; records 0 for a partition that it meets for the first time. */
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
