import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import type { Logger } from 'pino'
import { type Periodic, runPeriodically } from '../flow/periodic.ts'
import { type Db, type Tx, transaction, tryLock } from '../postgres/pool.ts'
import { isTransient } from './apply-batch.ts'
import { type Build, buildLock, findBuild, liveBuild, useSchema } from './builds.ts'
import type { EndedData, Projection, Prune } from './projection.ts'

/** What the log says has ended, of every organization of which something has. */
export type FindEnded = (db: Db) => Promise<EndedData[]>

interface PruneBuild {
  pool: pg.Pool
  build: Build
  prune: Prune
  ended: EndedData[]
  // Whoever asks has the build's lock.
  isLocked?: boolean
}

/** Deletes all that has ended from the build. */
export async function pruneBuild({
  pool,
  build,
  prune,
  ended,
  isLocked = false,
}: PruneBuild): Promise<void> {
  for (let more = ended.length > 0; more; )
    more = await transaction(pool, async (tx) => {
      if (!isLocked) await lockShared(tx, build)
      await tx.query(useSchema(build))
      return prune(tx, ended)
    })
}

// As those who apply events do: the build is not switched meanwhile.
async function lockShared(tx: Tx, build: Build): Promise<void> {
  await tx.query('select pg_advisory_xact_lock_shared($1)', [buildLock(build)])
}

interface PrunerOptions {
  pool: pg.Pool
  projection: Projection
  findEnded: FindEnded
  logger: Logger
  // Milliseconds (default a minute).
  intervalMs?: number
}

// Between two steps, so that those who apply events have the disks in between.
const restMs = 50

/** Deletes what has ended from the live build, a little at a time. Several may run, and one works at a time. */
export function runPruner({
  pool,
  projection,
  findEnded,
  logger,
  intervalMs = 60_000,
}: PrunerOptions): Periodic {
  let step = createStep(projection)

  async function work(): Promise<boolean> {
    const more = await transaction(pool, async (tx) => {
      if (!(await tryLock(tx, `tidegate:prune:${projection.name}`))) return false
      const ended = await findEnded(tx)
      return ended.length > 0 && step(tx, ended)
    })
    if (more) await delay(restMs)
    return more
  }

  function onError(err: unknown): void {
    // What it remembers may have been rolled back.
    step = createStep(projection)
    // Who applies events may have been in the way.
    const level = isTransient(err) ? 'debug' : 'warn'
    logger[level](
      { err, projection: projection.name },
      'what has ended was not deleted; the next run tries again',
    )
  }

  return runPeriodically({ intervalMs, work, onError })
}

// With what it remembers of the build that it works on.
function createStep(projection: Projection): Prune {
  let current: { build: number; prune: Prune } | undefined
  return async (tx, ended) => {
    const build = await findBuild(tx, projection)
    await lockShared(tx, build)
    // Readers were switched while it waited.
    if ((await liveBuild(tx, projection.name, build.home))?.build !== build.build) return true
    if (current?.build !== build.build) {
      const prune = projection.createPrune?.()
      if (!prune) return false
      current = { build: build.build, prune }
    }
    await tx.query(useSchema(build))
    return current.prune(tx, ended)
  }
}
