import type pg from 'pg'
import { ensureTables } from '../postgres/ensure-tables.ts'
import { type Tx, transaction } from '../postgres/pool.ts'
import { type Build, createBuild, createIndexes, liveBuild, makeLive } from './builds.ts'
import type { Projection } from './projection.ts'

const baseTables = `
  create extension if not exists pg_trgm;
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
`

/**
 * Makes what every projection needs and the first build of each. May run any number of times and in many processes
 * at once. Returns the live builds; one whose version is not its projection's has to be rebuilt before it goes on.
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
