import { createHash } from 'node:crypto'
import type pg from 'pg'
import type { EventLog } from '../log/port.ts'
import { type Db, type Tx, transaction } from '../postgres/pool.ts'
import { type Build, buildColumns, dropBuild, ownHome } from './builds.ts'
import type { Projection } from './projection.ts'

/** What a build that is being filled has: some of its rows, or the readers' indexes too. */
type Stage = 'rows' | 'indexes'

/** Of what a build is made. Where it is another, rows of both would be mixed. */
export interface Source {
  projection: Projection
  log: Pick<EventLog, 'identity'>
}

/** Notes at the schema of the build what it has, so that a rebuild after a kill knows how to go on with it. */
export async function noteStage(
  tx: Tx,
  { schema }: Build,
  stage: Stage,
  source: Source,
): Promise<void> {
  await tx.query(`comment on schema ${schema} is '${noteOf(stage, await definitionOf(source))}'`)
}

export async function hasIndexes(db: Db, { schema }: Build, source: Source): Promise<boolean> {
  const { rows } = await db.query<{ note: string | null }>(
    `select obj_description($1::regnamespace, 'pg_namespace') as note`,
    [schema],
  )
  return rows[0]?.note === noteOf('indexes', await definitionOf(source))
}

const noteOf = (stage: Stage, definition: string) => `has ${stage}, definition ${definition}`

async function definitionOf({ projection, log }: Source): Promise<string> {
  const { version, ddl, indexes, topics, types = [] } = projection
  const parts = [await log.identity(), version, ddl, indexes, topics, [...types].sort()]
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex')
}

type Left = Build & { note: string | null }

/**
 * The build that a killed rebuild left, where this program would make the same one; its offsets say what it has. Drops
 * whatever else rebuilds have left, and with `fromScratch` all of it. The caller has the lock of rebuilds.
 */
export async function takeUnfinished(
  pool: pg.Pool,
  source: Source,
  { fromScratch }: { fromScratch: boolean },
): Promise<Build | undefined> {
  const left = await findLeft(pool, source.projection)
  const definition = await definitionOf(source)
  const isSame = ({ status, note }: Left) =>
    status === 'building' &&
    (note === noteOf('rows', definition) || note === noteOf('indexes', definition))
  const unfinished = fromScratch ? undefined : left.find(isSame)
  for (const build of left)
    if (build !== unfinished) await transaction(pool, (tx) => dropBuild(tx, build))
  if (!unfinished) return undefined
  const { note: _, ...build } = unfinished
  return build
}

// Newest first. A retired one has a schema where the kill came between the switch and the drop.
async function findLeft(db: Db, projection: Projection): Promise<Left[]> {
  const { rows } = await db.query<Left>(
    `select ${buildColumns(ownHome)}, obj_description(n.oid, 'pg_namespace') as note
     from ${ownHome}.projection_builds left join pg_namespace n on n.nspname = schema_name
     where projection = $1 and (status = 'building' or status = 'retired' and n.oid is not null)
     order by build desc`,
    [projection.name],
  )
  return rows
}
