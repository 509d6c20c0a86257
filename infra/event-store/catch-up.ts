import { unavailable } from '../errors/errors.ts'
import type { Position } from '../log/port.ts'
import type { Db } from '../postgres/pool.ts'
import type { Applied } from './applied.ts'
import { buildOffsets, liveBuild } from './builds.ts'

/** The last records before these ends, which is what a reader who wants all of them waits for. */
export function lastBefore(ends: Position[]): Position[] {
  return ends.filter(({ offset }) => offset > 0).map((end) => ({ ...end, offset: end.offset - 1 }))
}

/** Those of the records that the tables of the projection's live build do not show yet. */
export async function notApplied(db: Db, projection: string, records: Position[]): Promise<Position[]> {
  if (records.length === 0) return []
  const build = await liveBuild(db, projection)
  if (!build) throw unavailable(new Error(`projection ${projection} has no live build`))
  const offsets = await buildOffsets(db, build)
  const nextOf = new Map(offsets.map(({ topic, partition, offset }) => [`${topic}/${partition}`, offset]))
  return records.filter(
    ({ topic, partition, offset }) => (nextOf.get(`${topic}/${partition}`) ?? 0) <= offset,
  )
}

export interface CatchUpOptions {
  applied: Pick<Applied, 'waitFor'>
  projection: string
  records: Position[]
  timeoutMs: number
}

/**
 * Resolves when the tables that `db` reads show the records; rejects with ApiError service.unavailable when that takes
 * too long.
 */
export async function catchUp(
  db: Db,
  { applied, projection, records, timeoutMs }: CatchUpOptions,
): Promise<void> {
  const behind = await notApplied(db, projection, records)
  if (behind.length === 0) return
  await applied.waitFor(projection, behind, { timeoutMs })
  // What this process has heard may be ahead of a Postgres that lost its last commits; the table is not.
  const still = await notApplied(db, projection, behind)
  if (still.length > 0) throw unavailable(new Error(`projection ${projection} fell behind`))
}
