import { unavailable } from '../errors/errors.ts'
import { type EventLog, type Position, placeName, type Topic } from '../log/port.ts'
import type { Db } from '../postgres/pool.ts'
import type { Applied } from './applied.ts'
import { buildOffsets, liveBuild } from './builds.ts'
import type { Projection } from './projection.ts'

export interface CaughtUpOptions {
  db: Db
  log: Pick<EventLog, 'endPositions'>
  applied: Pick<Applied, 'waitFor'>
  readModels: readonly { projection: string; topic: Topic }[]
  identify?: ((db: Db) => Promise<string>) | undefined
}

export interface CaughtUp {
  /**
   * Resolves with the database's identity when the read models show all that the log had at the first call
   * for that identity. Rejects with ApiError service.unavailable after a second.
   */
  waitUntilCaughtUp(): Promise<string>
  /**
   * Whether the database is still the one of this identity. All that was read since then came from read
   * models that had caught up.
   */
  isUnchanged(identity: string): Promise<boolean>
  /** Rejects when the read models have not caught up for 10 seconds. */
  check(): Promise<void>
}

interface Target {
  identity: string
  ends: { projection: string; records: Position[] }[]
}

const waitMs = 1000
const notReadyAfterMs = 10_000

/**
 * Whoever acts on what a read model does not show waits until it has caught up, reads, and acts only if the
 * database is unchanged. A read model shows less than before in two cases: it is being filled, or the
 * database lost its last commits.
 */
export function createCaughtUp({ identify = databaseIdentity, ...options }: CaughtUpOptions): CaughtUp {
  const { db, log, applied, readModels } = options
  let caughtUpWith: string | undefined
  let target: Target | undefined
  let waiting: Promise<string> | undefined
  let behindSince: number | undefined

  async function newTarget(identity: string): Promise<Target> {
    const ends = readModels.map(async ({ projection, topic }) => ({
      projection,
      records: lastBefore(await log.endPositions(topic)),
    }))
    return { identity, ends: await Promise.all(ends) }
  }

  async function waitNow(): Promise<string> {
    // Before the wait: a database that goes back during it has another identity at the next `isStill`.
    const identity = await identify(db)
    // Kept for the next try: records that come later are nothing to wait for.
    if (target?.identity !== identity) target = await newTarget(identity)
    for (const end of target.ends) await catchUp(db, { applied, ...end, timeoutMs: waitMs })
    caughtUpWith = identity
    target = undefined
    behindSince = undefined
    return identity
  }

  async function waitUntilCaughtUp(): Promise<string> {
    if (caughtUpWith !== undefined) return caughtUpWith
    waiting ??= waitNow()
      .catch((error) => {
        behindSince ??= performance.now()
        throw error
      })
      .finally(() => {
        waiting = undefined
      })
    return waiting
  }

  return {
    waitUntilCaughtUp,
    async isUnchanged(identity) {
      const isUnchanged = (await identify(db)) === identity
      if (!isUnchanged && caughtUpWith === identity) caughtUpWith = undefined
      return isUnchanged
    },
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

export async function notApplied(db: Db, projection: string, records: Position[]): Promise<Position[]> {
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

/**
 * Names the run of the database. The name changes after a restart, a crash, a failover or a restore, each of
 * which may bring back an earlier state. The start time says so, except where Postgres recovers from the
 * crash of one of its processes. Its statistics begin anew then, so their reset time is in the name.
 */
export async function databaseIdentity(db: Db): Promise<string> {
  const { rows } = await db.query<{ identity: string }>({
    name: 'database-identity',
    text: `select extract(epoch from pg_postmaster_start_time()) || '/'
             || coalesce(extract(epoch from pg_stat_get_bgwriter_stat_reset_time())::text, '') as identity`,
  })
  const [row] = rows
  if (!row) throw new Error('the database does not say when it started')
  return row.identity
}

export interface Lag {
  projection: string
  topic: string
  partition: number
  records: number
}

export interface LagOptions {
  projections: Projection[]
  log: Pick<EventLog, 'endPositions'>
  pool: Db
}

export async function projectionLags({ projections, log, pool }: LagOptions): Promise<Lag[]> {
  const lags = await Promise.all(
    projections.map(async ({ name, topics }) => {
      const build = await liveBuild(pool, name)
      const applied = build ? await buildOffsets(pool, build) : []
      const ends = (await Promise.all(topics.map((topic) => log.endPositions(topic)))).flat()
      return ends.map((end) => lagOf(name, end, applied))
    }),
  )
  return lags.flat()
}

function lagOf(projection: string, { topic, partition, offset }: Position, applied: Position[]): Lag {
  const at = applied.find((position) => position.topic === topic && position.partition === partition)
  return { projection, topic, partition, records: Math.max(0, offset - (at?.offset ?? 0)) }
}
