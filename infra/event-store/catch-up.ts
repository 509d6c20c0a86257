import { unavailable } from '../errors/errors.ts'
import { type EventLog, type Position, placeName, type Topic } from '../log/port.ts'
import type { Db } from '../postgres/pool.ts'
import type { Applied } from './applied.ts'
import { buildOffsets, liveBuild } from './builds.ts'

export interface CaughtUpOptions {
  db: Db
  log: Pick<EventLog, 'endPositions'>
  applied: Pick<Applied, 'waitFor'>
  readModels: readonly { projection: string; topic: Topic }[]
}

export interface CaughtUp {
  /**
   * Resolves when the read models show all that the log had at the first call; from then on at once. Rejects with
   * ApiError service.unavailable after a second.
   */
  waitUntilCaughtUp(): Promise<void>
  /** Rejects when the read models have not caught up for 10 seconds. */
  check(): Promise<void>
}

const waitMs = 1000
const notReadyAfterMs = 10_000

/**
 * Whoever acts on what a read model does not show waits first until it has caught up, since it may be being filled. Once
 * is enough: what a read model showed it goes on showing. After a restore of the database all processes are started
 * again.
 */
export function createCaughtUp({ db, log, applied, readModels }: CaughtUpOptions): CaughtUp {
  let ends: { projection: string; records: Position[] }[] | undefined
  let caughtUp: Promise<void> | undefined
  let behindSince: number | undefined

  async function endsNow() {
    const found = readModels.map(async ({ projection, topic }) => ({
      projection,
      records: lastBefore(await log.endPositions(topic)),
    }))
    return await Promise.all(found)
  }

  async function wait(): Promise<void> {
    try {
      // Kept for the next try: records that come later are nothing to wait for.
      ends ??= await endsNow()
      for (const end of ends) await catchUp(db, { applied, ...end, timeoutMs: waitMs })
      behindSince = undefined
    } catch (error) {
      caughtUp = undefined
      behindSince ??= performance.now()
      throw error
    }
  }

  function waitUntilCaughtUp(): Promise<void> {
    caughtUp ??= wait()
    return caughtUp
  }

  return {
    waitUntilCaughtUp,
    async check() {
      if (behindSince === undefined || performance.now() - behindSince < notReadyAfterMs) return
      // Whoever waited may have nothing to do any more, and then only this look finds that it is over.
      await waitUntilCaughtUp()
    },
  }
}

/** The last record before each of these ends. Who waits for them has seen all. */
export function lastBefore(ends: Position[]): Position[] {
  return ends.filter(({ offset }) => offset > 0).map((end) => ({ ...end, offset: end.offset - 1 }))
}

export async function notApplied(
  db: Db,
  projection: string,
  records: Position[],
): Promise<Position[]> {
  if (records.length === 0) return []
  const build = await liveBuild(db, projection)
  if (!build) throw unavailable(new Error(`projection ${projection} has no live build`))
  const offsets = await buildOffsets(db, build)
  const nextOf = new Map(offsets.map((at) => [placeName(at), at.offset]))
  return records.filter((record) => (nextOf.get(placeName(record)) ?? 0) <= record.offset)
}

export interface CatchUpOptions {
  applied: Pick<Applied, 'waitFor'>
  projection: string
  records: Position[]
  timeoutMs: number
}

/**
 * Rejects with ApiError service.unavailable when the tables that `db` reads do not show the records in time.
 */
export async function catchUp(
  db: Db,
  { applied, projection, records, timeoutMs }: CatchUpOptions,
): Promise<void> {
  const missing = await notApplied(db, projection, records)
  if (missing.length === 0) return
  await applied.waitFor(projection, missing, { timeoutMs })
  // Notifications may be ahead of a Postgres that lost its last commits; the table is not.
  const still = await notApplied(db, projection, missing)
  if (still.length > 0) throw unavailable(new Error(`projection ${projection} fell behind`))
}
