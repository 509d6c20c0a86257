import type { Position } from '../log/port.ts'
import type { Db } from '../postgres/pool.ts'
import { type Build, liveBuild } from './builds.ts'
import type { Projection } from './projection.ts'

/** The build that runners of this version of the projection write to; throws when readers see one of another. */
export async function findBuild(db: Db, projection: Projection): Promise<Build> {
  const build = await liveBuild(db, projection.name)
  if (build?.version === projection.version) return build
  throw new Error(
    `projection ${projection.name}: the live build has version ${build?.version ?? 'none'}, this program has ` +
      `${projection.version}; run "tidegate rebuild ${projection.name}"`,
  )
}

/**
 * The next offsets of the live build, as of one moment: a switch to another build never makes one smaller. Undefined
 * when this version of the projection did not make it.
 */
export async function liveBuildOffsets(
  db: Db,
  { name, version }: Pick<Projection, 'name' | 'version'>,
): Promise<Position[] | undefined> {
  const { rows } = await db.query<{ offsets: Position[] }>(
    `select (select coalesce(json_agg(json_build_object('topic', topic, 'partition', partition, 'offset', next_offset)),
         '[]') from tidegate.projection_offsets o where o.projection = b.projection and o.build = b.build) as offsets
     from tidegate.projection_builds b where projection = $1 and version = $2 and status = 'live'`,
    [name, version],
  )
  return rows[0]?.offsets
}
