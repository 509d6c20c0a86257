import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import type { Logger } from 'pino'
import type { EventLog, Position } from '../log/port.ts'
import { type Db, lockKey, type Tx, transaction } from '../postgres/pool.ts'
import { isTransient } from './apply-batch.ts'
import {
  type Build,
  buildLock,
  buildOffsets,
  createBuild,
  createIndexes,
  dropBuild,
  liveBuild,
  makeLive,
} from './builds.ts'
import type { EventCodec } from './codec.ts'
import { compareBuilds, exportSnapshot, type TableComparison, useSnapshot } from './compare.ts'
import { type Loader, startLoader } from './loader.ts'
import type { EndedData, Projection } from './projection.ts'
import { type FindEnded, pruneBuild } from './prune.ts'
import type { Skips } from './skips.ts'
import { hasIndexes, noteStage, takeUnfinished } from './unfinished.ts'

export interface RebuildOptions {
  projection: Projection
  log: EventLog
  pool: pg.Pool
  codec: EventCodec
  logger: Logger
  skips: Pick<Skips, 'has'>
  /** Drops the build that a killed rebuild left, instead of going on with it. */
  fromScratch?: boolean
  /** Told once where it goes on with the build that a killed rebuild left: the offsets that this one has. */
  onResume?: (from: Position[]) => void
  /** `total`: records that the live build had applied when the rebuild began, less those that its own build had. */
  onProgress?: (progress: { events: number; total: number }) => void
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
  /** Where it went on with the build that a killed rebuild left; none = it began at offset 0. */
  resumedFrom: Position[]
  /** That this run applied. */
  events: number
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
 * readers and runners. Runners pause only for the last few events and for the switch. After a kill, or a
 * failure that may pass, the next one goes on with the build. Throws when another rebuild of the projection runs, or when
 * an event cannot be applied.
 */
export async function rebuild(options: RebuildOptions): Promise<RebuildReport> {
  return withRebuildLock(options, async () => {
    const started = performance.now()
    const { pool, projection } = options
    const live = await liveBuild(pool, projection.name)
    if (!live) throw new Error(`projection ${projection.name} has no live build`)
    const next = (await resume(options)) ?? (await begin(options))
    const drop = (build: Build) =>
      retryLocked(() => transaction(pool, (tx) => dropBuild(tx, build)))
    const report = await fill({ ...options, live, next }).catch(async (error) => {
      // Who mends a handler that failed may change what it wrote before, too. What cannot be dropped now is left to the
      // next rebuild.
      if (!mayPass(error)) await drop(next).catch(() => {})
      throw error
    })
    await drop(report.switched ? live : next)
    return { ...report, seconds: (performance.now() - started) / 1000 }
  })
}

async function resume(options: RebuildOptions): Promise<Build | undefined> {
  const { pool, fromScratch = false } = options
  return retryLocked(() => takeUnfinished(pool, options, { fromScratch }))
}

async function begin(options: RebuildOptions): Promise<Build> {
  return transaction(options.pool, async (tx) => {
    const build = await createBuild(tx, options.projection, 'building')
    await noteStage(tx, build, 'rows', options)
    return build
  })
}

interface Filling extends RebuildOptions {
  live: Build
  next: Build
}

async function fill(filling: Filling): Promise<Omit<RebuildReport, 'seconds'>> {
  const { pool, next, projection, onProgress } = filling
  let events = 0
  const target = await liveOffsets(pool, filling)
  const resumedFrom = (await buildOffsets(pool, next)).filter(({ offset }) => offset > 0)
  if (resumedFrom.length > 0) filling.onResume?.(resumedFrom)
  const total = sumOf(target) - sumOf(resumedFrom)
  const onEvents = (count: number) => {
    events += count
    onProgress?.({ events, total })
  }
  const phases = { load: 0, index: 0, compare: 0 }
  const timed = async <T>(phase: keyof RebuildPhases, work: () => Promise<T>): Promise<T> => {
    const started = performance.now()
    const result = await work()
    phases[phase] = (performance.now() - started) / 1000
    return result
  }
  const loader = await startLoader({ ...filling, build: next, onEvents })
  try {
    await timed('load', () => loader.waitFor(target))
    await timed('index', () => transaction(pool, (tx) => index(tx, filling)))
    const pruneRest = await pruneBoth(filling)
    const tables = await timed('compare', () => compare(filling, loader, pruneRest))
    const equal = tables.every((table) => table.equal)
    const switched = equal || filling.acceptDifferences === true
    if (switched) await atSameOffsets(filling, loader, (tx) => makeLive(tx, projection, next))
    return {
      projection: projection.name,
      build: next.build,
      tables,
      equal,
      switched,
      resumedFrom,
      events,
      phases,
    }
  } finally {
    await loader.stop()
  }
}

const sumOf = (positions: Position[]) => positions.reduce((sum, { offset }) => sum + offset, 0)

async function index(tx: Tx, filling: Filling): Promise<void> {
  const { projection, next } = filling
  // Events are not applied meanwhile: they would lock the same tables in another order.
  await tx.query('select pg_advisory_xact_lock($1)', [buildLock(next)])
  if (!(await hasIndexes(tx, next, filling))) {
    await tx.query(`set local maintenance_work_mem = '256MB'`)
    await createIndexes(tx, projection, next)
    await noteStage(tx, next, 'indexes', filling)
  }
}

// Afterwards, what has come meanwhile is little enough for the moment in which nobody applies events.
async function pruneBoth(filling: Filling): Promise<PruneRest> {
  const pruners = [filling.live, filling.next].map((build) => createPruner(filling, build))
  const ended = await findEnded(filling)
  // The servers' own pruner may delete the same rows of the live build in another order.
  for (const prune of pruners) await retryLocked(() => prune(ended))
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
  return retryLocked(async () => {
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

async function liveOffsets(db: Db, { projection, live }: Filling): Promise<Position[]> {
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

async function retryLocked<T>(work: () => Promise<T>, attempts = 20): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (attempts <= 1 || !mayPass(error)) throw error
    return retryLocked(work, attempts - 1)
  }
}

const mayPass = (error: unknown) => isTransient(error) || error instanceof PausedTooLong

async function withRebuildLock<T>(
  { pool, projection }: RebuildOptions,
  work: () => Promise<T>,
): Promise<T> {
  const key = lockKey(`tidegate:rebuild:${projection.name}`)
  const holder = await pool.connect()
  try {
    const { rows } = await holder.query<{ locked: boolean }>(
      'select pg_try_advisory_lock($1) as locked',
      [key],
    )
    if (!rows[0]?.locked) throw new Error(`another rebuild of ${projection.name} is running`)
    try {
      return await work()
    } finally {
      await holder.query('select pg_advisory_unlock($1)', [key])
    }
  } finally {
    holder.release()
  }
}
