import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import type { Logger } from 'pino'
import { type Periodic, runPeriodically } from '../flow/periodic.ts'
import { type Db, type Tx, transaction, tryLock } from '../postgres/pool.ts'
import { isTransient } from './apply-batch.ts'
import { type Build, buildLock, findLiveBuild, requireCurrentBuild, searchPath } from './builds.ts'
import type { Projection, Prune, RetentionCutoffs } from './projection.ts'

/** Returns the retention cutoffs of every organization that has expired data. */
export type FindCutoffs = (db: Db) => Promise<RetentionCutoffs[]>

interface PruneBuild {
  pool: pg.Pool
  build: Build
  prune: Prune
  cutoffs: RetentionCutoffs[]
  // True if the caller holds the build's lock. Default: false.
  isLocked?: boolean
}

/** Deletes all expired data from the build. */
export async function pruneBuild({
  pool,
  build,
  prune,
  cutoffs,
  isLocked = false,
}: PruneBuild): Promise<void> {
  for (let more = cutoffs.length > 0; more; )
    more = await transaction(pool, async (tx) => {
      if (!isLocked) await lockShared(tx, build)
      await tx.query(searchPath(build))
      return prune(tx, cutoffs)
    })
}

// Takes the same lock as transactions that apply events, so the build isn't switched in the meantime.
async function lockShared(tx: Tx, build: Build): Promise<void> {
  await tx.query('select pg_advisory_xact_lock_shared($1)', [buildLock(build)])
}

interface PrunerOptions {
  pool: pg.Pool
  projection: Projection
  findCutoffs: FindCutoffs
  logger: Logger
  // Milliseconds (default a minute).
  intervalMs?: number
}

// Pause between two steps, which leaves disk bandwidth to the runners.
const pauseMs = 50

/** Deletes expired data from the live build in small steps. Any number may run; a lock lets one work at a time. */
export function runPruner({
  pool,
  projection,
  findCutoffs,
  logger,
  intervalMs = 60_000,
}: PrunerOptions): Periodic {
  let step = createStep(projection)

  async function work(): Promise<boolean> {
    const more = await transaction(pool, async (tx) => {
      if (!(await tryLock(tx, `tidegate:prune:${projection.name}`))) return false
      const cutoffs = await findCutoffs(tx)
      return cutoffs.length > 0 && step(tx, cutoffs)
    })
    if (more) await delay(pauseMs)
    return more
  }

  function onError(err: unknown): void {
    // The step's memory of deleted rows may have been rolled back.
    step = createStep(projection)
    // A conflict with a transaction that applies events is expected.
    const level = isTransient(err) ? 'debug' : 'warn'
    logger[level]({ err, projection: projection.name }, 'failed to delete expired data; retrying')
  }

  return runPeriodically({ intervalMs, work, onError })
}

// Creates a prune function for the live build, and a new one after each switch.
function createStep(projection: Projection): Prune {
  let current: { build: number; prune: Prune } | undefined
  return async (tx, cutoffs) => {
    const build = await requireCurrentBuild(tx, projection)
    await lockShared(tx, build)
    // Another build became live during the wait for the lock: start again.
    if ((await findLiveBuild(tx, projection.name, build.home))?.build !== build.build) return true
    if (current?.build !== build.build) {
      const prune = projection.createPrune?.()
      if (!prune) return false
      current = { build: build.build, prune }
    }
    await tx.query(searchPath(build))
    return current.prune(tx, cutoffs)
  }
}
