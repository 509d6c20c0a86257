import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import type { Logger } from 'pino'
import { runPeriodically } from '../flow/periodic.ts'
import { backoffMs, type EventLog, type Position } from '../log/port.ts'
import { type Db, lockKey, type Tx, transaction } from '../postgres/pool.ts'
import { isTransient } from './apply-batch.ts'
import {
  type Build,
  buildLock,
  createBuild,
  createIndexes,
  dropBuild,
  findLiveBuild,
  findUnfinishedBuilds,
  loadBuildOffsets,
  makeLive,
} from './builds.ts'
import type { EventCodec } from './codec.ts'
import { beginSnapshot, compareBuilds, joinSnapshot, type TableComparison } from './compare.ts'
import { type Loader, type LoaderOptions, type PartitionShare, startLoader } from './loader.ts'
import type { Projection, RetentionCutoffs } from './projection.ts'
import { type FindCutoffs, pruneBuild } from './prune.ts'
import type { Skips } from './skips.ts'

export interface RebuildOptions {
  projection: Projection
  log: EventLog
  pool: pg.Pool
  codec: EventCodec
  logger: Logger
  skips: Pick<Skips, 'has'>
  /** Loads the new build up to `target` in other processes with `loadPartitionShare`. Default: in this one. */
  loadInOtherProcesses?: (target: Position[]) => Promise<void>
  /** `total` is the number of records that the live build had read when the rebuild began. */
  onProgress?: (progress: { records: number; total: number }) => void
  /** Expired data is deleted from both builds before they are compared. Absent = nothing expires. */
  findCutoffs?: FindCutoffs | undefined
  /** Switches even if the builds differ, for an intended change of the code. */
  acceptDifferences?: boolean
}

export interface RebuildReport {
  projection: string
  build: number
  tables: TableComparison[]
  equal: boolean
  switched: boolean
  /** Records that the new build has read. */
  records: number
  seconds: number
  phases: RebuildPhases
}

/** Seconds spent loading (reading the log and writing rows), creating the readers' indexes, and comparing. */
export interface RebuildPhases {
  load: number
  index: number
  compare: number
}

/**
 * Rebuilds a projection without downtime: fills a new build from offset 0 beside the live one, compares both at the
 * same offsets, and switches readers and runners. Runners pause only for the last few events and for the switch.
 * Transient errors are retried. Throws if another rebuild of the projection is running, or if an event can't be
 * applied; the new build is then dropped. The build of a killed rebuild is dropped by the next one.
 */
export async function rebuild(options: RebuildOptions): Promise<RebuildReport> {
  return withRebuildLock(options, async () => {
    const started = performance.now()
    const { pool, projection } = options
    const live = await findLiveBuild(pool, projection.name)
    if (!live) throw new Error(`projection ${projection.name} has no live build`)
    const drop = (build: Build) =>
      retryTransient(() => transaction(pool, (tx) => dropBuild(tx, build)))
    for (const build of await findUnfinishedBuilds(pool, projection.name)) await drop(build)
    const next = await transaction(pool, (tx) => createBuild(tx, projection, 'building'))
    const report = await fill({ ...options, live, next }).catch(async (error) => {
      // If this fails, the next rebuild drops it.
      await drop(next).catch(() => {})
      throw error
    })
    await drop(report.switched ? live : next)
    return { ...report, seconds: (performance.now() - started) / 1000 }
  })
}

interface RebuildContext extends RebuildOptions {
  live: Build
  next: Build
}

async function fill(context: RebuildContext): Promise<Omit<RebuildReport, 'seconds'>> {
  const { pool, next, projection, loadInOtherProcesses } = context
  const phases = { load: 0, index: 0, compare: 0 }
  const timed = async <T>(phase: keyof RebuildPhases, work: () => Promise<T>): Promise<T> => {
    const started = performance.now()
    const result = await work()
    phases[phase] += (performance.now() - started) / 1000
    return result
  }

  // 1. Load the records that the live build has read.
  const target = await loadLiveOffsets(pool, context)
  const expired = sumOffsets(await firstPositions(context))
  await using stack = new AsyncDisposableStack()
  stack.defer(startProgressReports(context, { expired, total: sumOffsets(target) - expired }))
  if (loadInOtherProcesses) await timed('load', () => loadInOtherProcesses(target))
  const loader = await startLoader({ ...context, build: next })
  stack.defer(loader.stop)
  await timed('load', () => loader.waitFor(target))

  // 2. Create the readers' indexes.
  await timed('index', () => retryTransient(() => transaction(pool, (tx) => index(tx, context))))

  // 3. Delete expired data from both builds.
  const pruneAgain = await pruneBoth(context)

  // 4. Compare both at the same offsets.
  const tables = await timed('compare', () => compare(context, loader, pruneAgain))
  const equal = tables.every((table) => table.equal)

  // 5. Switch.
  const switched = equal || context.acceptDifferences === true
  if (switched) await withSameOffsets(context, loader, (tx) => makeLive(tx, projection, next))
  const records = sumOffsets(await loadBuildOffsets(pool, next)) - expired
  return {
    projection: projection.name,
    build: next.build,
    tables,
    equal,
    switched,
    records,
    phases,
  }
}

const progressMs = 500

/** Reports the new build's progress periodically. Returns the function that stops the reports. */
function startProgressReports(
  { pool, next, onProgress }: RebuildContext,
  { expired, total }: { expired: number; total: number },
) {
  if (!onProgress) return async () => {}
  const reporting = runPeriodically({
    intervalMs: progressMs,
    async work() {
      const records = sumOffsets(await loadBuildOffsets(pool, next)) - expired
      onProgress({ records: Math.max(0, records), total })
    },
    onError: () => {},
  })
  return () => reporting.stop()
}

/** Loads some partitions of the build that a rebuild is filling, up to the live build's offsets at the call. */
export async function loadPartitionShare(
  loading: Omit<LoaderOptions, 'build' | 'live' | 'share'>,
  share: PartitionShare,
): Promise<void> {
  const { pool, projection } = loading
  const live = await findLiveBuild(pool, projection.name)
  const unfinished = await findUnfinishedBuilds(pool, projection.name)
  const next = unfinished.find(({ status }) => status === 'building')
  if (!live || !next) throw new Error(`no rebuild of ${projection.name} is running`)
  const loader = await startLoader({ ...loading, live, build: next, share })
  try {
    await loader.waitFor(await loadLiveOffsets(pool, { projection, live }))
  } finally {
    await loader.stop()
  }
}

const firstPositions = async ({ log, projection }: Pick<RebuildContext, 'log' | 'projection'>) =>
  (await Promise.all(projection.topics.map((topic) => log.firstPositions(topic)))).flat()

const sumOffsets = (positions: Position[]) => positions.reduce((sum, { offset }) => sum + offset, 0)

async function index(tx: Tx, { projection, next }: RebuildContext): Promise<void> {
  // Blocks transactions that apply events, which lock the same tables in another order.
  await tx.query('select pg_advisory_xact_lock($1)', [buildLock(next)])
  await tx.query(`set local maintenance_work_mem = '256MB'`)
  await createIndexes(tx, projection, next)
}

// Deletes expired data from both builds. Returns a function that does so again while runners are paused.
async function pruneBoth(context: RebuildContext): Promise<PruneAgain> {
  const pruners = [context.live, context.next].map((build) => createPruner(context, build))
  const cutoffs = await readCutoffs(context)
  // Retries conflicts with the servers' pruner, which may delete the same rows of the live build in another order.
  for (const prune of pruners) await retryTransient(() => prune(cutoffs))
  return async () => {
    // The live build's pruner may have deleted data that expired since.
    const newCutoffs = await readCutoffs(context)
    for (const prune of pruners) await prune(newCutoffs, { isLocked: true })
    return newCutoffs
  }
}

/** Returns the cutoffs that it applied. */
type PruneAgain = () => Promise<RetentionCutoffs[]>

const readCutoffs = async ({ pool, findCutoffs }: RebuildContext): Promise<RetentionCutoffs[]> =>
  (await findCutoffs?.(pool)) ?? []

function createPruner({ pool, projection }: RebuildContext, build: Build) {
  let current = projection.createPrune?.()
  return async (cutoffs: RetentionCutoffs[], { isLocked = false } = {}): Promise<void> => {
    const prune = current
    if (!prune) return
    await pruneBuild({ pool, build, prune, cutoffs, isLocked }).catch((error: unknown) => {
      // The prune function's memory of deleted rows may have been rolled back.
      current = projection.createPrune?.()
      throw error
    })
  }
}

// Compares the builds in a snapshot with the same offsets for both, while both continue to be filled. Also gathers the
// new build's planner statistics.
async function compare(
  context: RebuildContext,
  loader: Loader,
  pruneAgain: PruneAgain,
): Promise<TableComparison[]> {
  const { pool, projection, next } = context
  const [liveDb, nextDb] = [await pool.connect(), await pool.connect()]
  try {
    const { cutoffs, snapshot } = await withSameOffsets(context, loader, async () => ({
      cutoffs: await pruneAgain(),
      snapshot: await beginSnapshot(liveDb),
    }))
    await joinSnapshot(nextDb, snapshot)
    const [tables] = await Promise.all([
      compareBuilds({ liveDb, nextDb }, { ...context, cutoffs }),
      ...projection.tables.map((table) => pool.query(`analyze ${next.schema}.${table}`)),
    ])
    return tables
  } finally {
    for (const reader of [liveDb, nextDb]) {
      await reader.query('rollback').catch(() => {})
      reader.release()
    }
  }
}

/** Runs `work` while runners are paused and both builds have the same offsets. Retries transient errors. */
async function withSameOffsets<T>(
  context: RebuildContext,
  loader: Loader,
  work: (tx: Tx) => Promise<T>,
): Promise<T> {
  const { pool, live } = context
  return retryTransient(async () => {
    // Catch up before taking the lock, so that the pause is short.
    await loader.waitFor(await loadLiveOffsets(pool, context))
    return transaction(pool, async (tx) => {
      // Waits for batches that are being applied, with no timeout, and blocks later ones.
      await tx.query('select pg_advisory_xact_lock($1)', [buildLock(live)])
      // Shorter than deadlock_timeout, so that a deadlock with a reader of two views aborts this and not the reader.
      await tx.query(`set local lock_timeout = '500ms'`)
      const positions = await loadLiveOffsets(tx, context)
      await throwIfPausedTooLong(loader.waitFor(positions))
      return work(tx)
    })
  })
}

async function loadLiveOffsets(
  db: Db,
  { projection, live }: Pick<RebuildContext, 'projection' | 'live'>,
): Promise<Position[]> {
  const offsets = await loadBuildOffsets(db, live)
  return offsets.filter(({ topic }) => projection.topics.includes(topic))
}

// Runners are paused, and commands that wait for them time out after 5 seconds.
const maxPauseMs = 2000

class PausedTooLong extends Error {}

async function throwIfPausedTooLong(work: Promise<void>): Promise<void> {
  const timer = new AbortController()
  const timeout = delay(maxPauseMs, undefined, { signal: timer.signal }).then(() => {
    throw new PausedTooLong('the new build did not catch up while runners were paused')
  })
  try {
    await Promise.race([work, timeout])
  } finally {
    timer.abort()
    await timeout.catch(() => {})
  }
}

const retryForMs = 120_000

/** Retries transient errors for two minutes: Postgres may be restarting, or readers may hold locks. */
async function retryTransient<T>(work: () => Promise<T>): Promise<T> {
  const until = performance.now() + retryForMs
  for (let failures = 1; ; failures++) {
    try {
      return await work()
    } catch (error) {
      if (!isRetryable(error) || performance.now() > until) throw error
      await delay(Math.min(backoffMs(failures), 1000))
    }
  }
}

const isRetryable = (error: unknown) => isTransient(error) || error instanceof PausedTooLong

async function withRebuildLock<T>(
  { pool, projection }: RebuildOptions,
  work: () => Promise<T>,
): Promise<T> {
  const key = lockKey(`tidegate:rebuild:${projection.name}`)
  const holder = await pool.connect()
  // If the lock is lost with its connection, another rebuild may drop this one's build, and this one then fails.
  const ignoreError = () => {}
  holder.on('error', ignoreError)
  try {
    const { rows } = await holder.query<{ locked: boolean }>(
      'select pg_try_advisory_lock($1) as locked',
      [key],
    )
    if (!rows[0]?.locked) throw new Error(`another rebuild of ${projection.name} is running`)
    try {
      return await work()
    } finally {
      await holder.query('select pg_advisory_unlock($1)', [key]).catch(() => {})
    }
  } finally {
    holder.off('error', ignoreError)
    holder.release()
  }
}
