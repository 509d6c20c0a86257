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
  buildOffsets,
  createBuild,
  createIndexes,
  dropBuild,
  findLeftBuilds,
  liveBuild,
  makeLive,
} from './builds.ts'
import type { EventCodec } from './codec.ts'
import { compareBuilds, exportSnapshot, type TableComparison, useSnapshot } from './compare.ts'
import { type Loader, type LoaderOptions, type PartitionShare, startLoader } from './loader.ts'
import type { EndedData, Projection } from './projection.ts'
import { type FindEnded, pruneBuild } from './prune.ts'
import type { Skips } from './skips.ts'

export interface RebuildOptions {
  projection: Projection
  log: EventLog
  pool: pg.Pool
  codec: EventCodec
  logger: Logger
  skips: Pick<Skips, 'has'>
  /** Loads the new build in other processes, each by `loadShare`. Absent = this process loads all. */
  loadBeside?: (target: Position[]) => Promise<void>
  /** `total`: records that the live build had read when the rebuild began. */
  onProgress?: (progress: { records: number; total: number }) => void
  /** Both builds are without what has ended. Absent = nothing has. */
  findEnded?: FindEnded | undefined
  /** Switch although the builds differ, because the code changed on purpose. */
  acceptDifferences?: boolean
}

export interface RebuildReport {
  projection: string
  build: number
  tables: TableComparison[]
  equal: boolean
  switched: boolean
  /** That the new build has read. */
  records: number
  seconds: number
  /** Of `seconds`: reading the log and writing rows, making the readers' indexes, and comparing both builds. */
  phases: RebuildPhases
}

export interface RebuildPhases {
  load: number
  index: number
  compare: number
}

/**
 * Fills a new build from offset 0 beside the live one, compares both at the same offsets, and switches
 * readers and runners. Runners pause only for the last few events and for the switch. What the database or the log
 * refuses for now is tried again. Throws when another rebuild of the projection runs, or when an event cannot be
 * applied; the new build is dropped then. That of a killed rebuild is dropped by the next one.
 */
export async function rebuild(options: RebuildOptions): Promise<RebuildReport> {
  return withRebuildLock(options, async () => {
    const started = performance.now()
    const { pool, projection } = options
    const live = await liveBuild(pool, projection.name)
    if (!live) throw new Error(`projection ${projection.name} has no live build`)
    const drop = (build: Build) =>
      retryTransient(() => transaction(pool, (tx) => dropBuild(tx, build)))
    for (const build of await findLeftBuilds(pool, projection.name)) await drop(build)
    const next = await transaction(pool, (tx) => createBuild(tx, projection, 'building'))
    const report = await fill({ ...options, live, next }).catch(async (error) => {
      // The next rebuild drops what cannot be dropped now.
      await drop(next).catch(() => {})
      throw error
    })
    await drop(report.switched ? live : next)
    return { ...report, seconds: (performance.now() - started) / 1000 }
  })
}

interface Filling extends RebuildOptions {
  live: Build
  next: Build
}

async function fill(filling: Filling): Promise<Omit<RebuildReport, 'seconds'>> {
  const { pool, next, projection, loadBeside } = filling
  const phases = { load: 0, index: 0, compare: 0 }
  const timed = async <T>(phase: keyof RebuildPhases, work: () => Promise<T>): Promise<T> => {
    const started = performance.now()
    const result = await work()
    phases[phase] += (performance.now() - started) / 1000
    return result
  }

  // 1. Load what the live build has.
  const target = await liveOffsets(pool, filling)
  const before = sumOf(await firstPositions(filling))
  await using stack = new AsyncDisposableStack()
  stack.defer(followProgress(filling, { before, total: sumOf(target) - before }))
  if (loadBeside) await timed('load', () => loadBeside(target))
  const loader = await startLoader({ ...filling, build: next })
  stack.defer(loader.stop)
  await timed('load', () => loader.waitFor(target))

  // 2. Make the readers' indexes.
  await timed('index', () => retryTransient(() => transaction(pool, (tx) => index(tx, filling))))

  // 3. Delete from both what has ended.
  const pruneRest = await pruneBoth(filling)

  // 4. Compare both at the same offsets.
  const tables = await timed('compare', () => compare(filling, loader, pruneRest))
  const equal = tables.every((table) => table.equal)

  // 5. Switch.
  const switched = equal || filling.acceptDifferences === true
  if (switched) await atSameOffsets(filling, loader, (tx) => makeLive(tx, projection, next))
  const records = sumOf(await buildOffsets(pool, next)) - before
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

/** Reads from the stored offsets how far the new build is, until the function that it returns is called. */
function followProgress(
  { pool, next, onProgress }: Filling,
  { before, total }: { before: number; total: number },
) {
  if (!onProgress) return async () => {}
  const following = runPeriodically({
    intervalMs: progressMs,
    async work() {
      const records = sumOf(await buildOffsets(pool, next)) - before
      onProgress({ records: Math.max(0, records), total })
      return false
    },
    onError: () => {},
  })
  return () => following.stop()
}

/** Loads a share of the build that a rebuild is filling, up to where the live one is at the call. */
export async function loadShare(
  loading: Omit<LoaderOptions, 'build' | 'live' | 'share'>,
  share: PartitionShare,
): Promise<void> {
  const { pool, projection } = loading
  const live = await liveBuild(pool, projection.name)
  const lefts = await findLeftBuilds(pool, projection.name)
  const next = lefts.find(({ status }) => status === 'building')
  if (!live || !next) throw new Error(`no rebuild of ${projection.name} is running`)
  const loader = await startLoader({ ...loading, live, build: next, share })
  try {
    await loader.waitFor(await liveOffsets(pool, { projection, live }))
  } finally {
    await loader.stop()
  }
}

const firstPositions = async ({ log, projection }: Pick<Filling, 'log' | 'projection'>) =>
  (await Promise.all(projection.topics.map((topic) => log.firstPositions(topic)))).flat()

const sumOf = (positions: Position[]) => positions.reduce((sum, { offset }) => sum + offset, 0)

async function index(tx: Tx, filling: Filling): Promise<void> {
  const { projection, next } = filling
  // Events are not applied meanwhile: they would lock the same tables in another order.
  await tx.query('select pg_advisory_xact_lock($1)', [buildLock(next)])
  await tx.query(`set local maintenance_work_mem = '256MB'`)
  await createIndexes(tx, projection, next)
}

// Afterwards, what has come meanwhile is little enough for the moment in which nobody applies events.
async function pruneBoth(filling: Filling): Promise<PruneRest> {
  const pruners = [filling.live, filling.next].map((build) => createPruner(filling, build))
  const ended = await findEnded(filling)
  // The servers' own pruner may delete the same rows of the live build in another order.
  for (const prune of pruners) await retryTransient(() => prune(ended))
  return async () => {
    // More may have ended meanwhile, and be gone from the live build.
    const endedNow = await findEnded(filling)
    for (const prune of pruners) await prune(endedNow, { isLocked: true })
    return endedNow
  }
}

/** Returns what has ended, all of which both builds are without then. */
type PruneRest = () => Promise<EndedData[]>

const findEnded = async ({ pool, findEnded }: Filling): Promise<EndedData[]> =>
  (await findEnded?.(pool)) ?? []

function createPruner({ pool, projection }: Filling, build: Build) {
  let current = projection.createPrune?.()
  return async (ended: EndedData[], { isLocked = false } = {}): Promise<void> => {
    const prune = current
    if (!prune) return
    await pruneBuild({ pool, build, prune, ended, isLocked }).catch((error: unknown) => {
      // What it remembers may have been rolled back.
      current = projection.createPrune?.()
      throw error
    })
  }
}

// Compares the builds as of one moment at which both had the same offsets. Both go on while the rows are read, at once
// from both. What the planner has to know of the new one for its readers is gathered meanwhile.
async function compare(
  filling: Filling,
  loader: Loader,
  pruneRest: PruneRest,
): Promise<TableComparison[]> {
  const { pool, projection, next } = filling
  const [ofLive, ofNext] = [await pool.connect(), await pool.connect()]
  try {
    const { ended, snapshot } = await atSameOffsets(filling, loader, async () => ({
      ended: await pruneRest(),
      snapshot: await exportSnapshot(ofLive),
    }))
    await useSnapshot(ofNext, snapshot)
    const [tables] = await Promise.all([
      compareBuilds({ ofLive, ofNext }, { ...filling, ended }),
      ...projection.tables.map((table) => pool.query(`analyze ${next.schema}.${table}`)),
    ])
    return tables
  } finally {
    for (const reader of [ofLive, ofNext]) {
      await reader.query('rollback').catch(() => {})
      reader.release()
    }
  }
}

async function atSameOffsets<T>(
  filling: Filling,
  loader: Loader,
  work: (tx: Tx) => Promise<T>,
): Promise<T> {
  const { pool, live } = filling
  return retryTransient(async () => {
    // First without the lock, so that little is left to do under it.
    await loader.waitFor(await liveOffsets(pool, filling))
    return transaction(pool, async (tx) => {
      // Waits for the batches that are being applied, however long they take, and goes before later ones.
      await tx.query('select pg_advisory_xact_lock($1)', [buildLock(live)])
      // A reader that holds one view and waits for another gets its turn before Postgres calls it a deadlock.
      await tx.query(`set local lock_timeout = '500ms'`)
      const positions = await liveOffsets(tx, filling)
      await withinPause(loader.waitFor(positions))
      return work(tx)
    })
  })
}

async function liveOffsets(
  db: Db,
  { projection, live }: Pick<Filling, 'projection' | 'live'>,
): Promise<Position[]> {
  const offsets = await buildOffsets(db, live)
  return offsets.filter(({ topic }) => projection.topics.includes(topic))
}

// Runners wait meanwhile, and commands for them, which give up after 5 seconds.
const pauseMs = 2000

class PausedTooLong extends Error {}

async function withinPause(work: Promise<void>): Promise<void> {
  const timer = new AbortController()
  const late = delay(pauseMs, undefined, { signal: timer.signal }).then(() => {
    throw new PausedTooLong('the new build did not catch up while runners were paused')
  })
  try {
    await Promise.race([work, late])
  } finally {
    timer.abort()
    await late.catch(() => {})
  }
}

const retriesMs = 120_000

/** Tries again for two minutes, as while Postgres starts anew or readers hold what is to be changed. */
async function retryTransient<T>(work: () => Promise<T>): Promise<T> {
  const until = performance.now() + retriesMs
  for (let failures = 1; ; failures++) {
    try {
      return await work()
    } catch (error) {
      if (!mayPass(error) || performance.now() > until) throw error
      await delay(Math.min(backoffMs(failures), 1000))
    }
  }
}

const mayPass = (error: unknown) => isTransient(error) || error instanceof PausedTooLong

async function withRebuildLock<T>(
  { pool, projection }: RebuildOptions,
  work: () => Promise<T>,
): Promise<T> {
  const key = lockKey(`tidegate:rebuild:${projection.name}`)
  const holder = await pool.connect()
  // Another rebuild may begin then. It drops this one's build, so that this one fails.
  const lockLost = () => {}
  holder.on('error', lockLost)
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
    holder.off('error', lockLost)
    holder.release()
  }
}
