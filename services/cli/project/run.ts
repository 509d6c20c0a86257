import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { refuseOtherLog } from '../../../infra/event-store/bound-log.ts'
import {
  loadBuildOffsets,
  migrateHome,
  requireCurrentBuild,
} from '../../../infra/event-store/builds.ts'
import type { Projection } from '../../../infra/event-store/projection.ts'
import { pruneBuild, runPruner } from '../../../infra/event-store/prune.ts'
import { type RunningProjection, runProjection } from '../../../infra/event-store/runner.ts'
import { createSkips, type Skips } from '../../../infra/event-store/skips.ts'
import { type Position, partitionName } from '../../../infra/log/port.ts'
import { progressOf } from '../../../infra/log/progress.ts'
import { lockKey } from '../../../infra/postgres/pool.ts'
import { countText } from '../../../infra/text.ts'
import { systemCode } from '../../../infra/thrown.ts'
import { type Stores, withStores } from '../operator/core.ts'
import { onStopSignals } from '../stop-signals.ts'
import { createFindCutoffs, projectionOf } from './projection.ts'
import { withRecordErrors } from './record-errors.ts'
import { retryWhileUnreachable } from './retry-unreachable.ts'
import { loadView } from './view.ts'
import { ViewFailed } from './view-failed.ts'

export interface ProjectFlags {
  once: boolean
}

type Project = Stores & {
  projection: Projection
  skips: Skips
  signal: AbortSignal
  /** Called whenever the database and the log have responded. */
  onConnected: () => void
}

/** Fills the view until the process is stopped; with `once`, until the view has caught up with the log. */
export async function runProject(file: string, flags: ProjectFlags): Promise<void> {
  const view = await loadView(file)
  const projection = projectionOf(view, path.basename(file))
  const decrypts = view.session === undefined ? false : 'ifSet'
  const signal = createStopSignal(flags)
  await retryWhileUnreachable(
    (onConnected) =>
      withStores(
        async (stores) => {
          await refuseOtherLog(stores.pool, stores.log)
          const codec = withRecordErrors(stores.codec)
          await using stack = new AsyncDisposableStack()
          const skips = createSkips({ ...stores, codec })
          stack.defer(() => skips.close())
          const project = { ...stores, codec, projection, skips, signal, onConnected }
          if (view.session && !stores.dataKeys)
            console.error('No master keys: encrypted event fields are empty for this view.')
          await fillView(project, flags)
        },
        { decrypts, isLogReadOnly: true, logsErrorsOnly: true },
      ),
    { signal, isLogEmbedded: !process.env.KAFKA_BROKERS },
  )
}

const stopWithinMs = 3000

// Exiting before the work has stopped loses nothing, because rows and offsets are written in the same transaction.
function createStopSignal({ once }: ProjectFlags): AbortSignal {
  const controller = new AbortController()
  onStopSignals(
    () => {
      // With --once, the view should have caught up first.
      if (once) process.exitCode = 1
      controller.abort()
      setTimeout(() => process.exit(), stopWithinMs).unref()
    },
    () => process.exit(1),
  )
  return controller.signal
}

async function fillView(project: Project, { once }: ProjectFlags): Promise<void> {
  const { pool, projection, logger, signal } = project
  await using stack = new AsyncDisposableStack()
  const lock = await lockView(project)
  stack.defer(lock.release)
  const dropped = await migrateHome(pool, projection)
  if (dropped !== undefined)
    console.error(
      `Dropped version ${dropped} of ${projection.name}. Reading the log again for version ${projection.version}.`,
    )
  const failed = Promise.withResolvers<string>()
  const onStopped = (at: Position, error: unknown) => failed.resolve(stopMessage(at, error))
  const applied = { reportCommit: () => {}, onAdvance: () => () => {} }
  // The runner repeats its warnings during an outage, but this command prints each outage once.
  const errorsOnly = logger.child({}, { level: 'error' })
  const running = await runProjection({ ...project, logger: errorsOnly, applied, onStopped })
  stack.defer(() => running.stop())
  const findCutoffs = createFindCutoffs(projection)
  if (projection.createPrune) {
    const pruner = runPruner({ pool, projection, findCutoffs, logger })
    stack.defer(() => pruner.stop())
  }
  const finished = new AbortController()
  stack.defer(() => finished.abort())
  const until = AbortSignal.any([signal, finished.signal])
  const failure = await Promise.race([
    failed.promise,
    lock.lost,
    reportProgress(project, { running, once, until }),
  ])
  if (failure !== undefined) throw new ViewFailed(failure)
  const prune = once && !signal.aborted ? projection.createPrune?.() : undefined
  if (!prune) return
  const build = await requireCurrentBuild(pool, projection)
  await pruneBuild({ pool, build, prune, cutoffs: await findCutoffs(pool) })
}

// Postgres releases the locks of a crashed machine after about ten seconds.
const lockTimeout = '12s'

/**
 * Locks the view, because two processes would overwrite each other's rows. Throws if another process has the lock. `lost`
 * rejects when the connection that holds the lock breaks.
 */
async function lockView({ pool, projection }: Project) {
  const client = await pool.connect()
  const lost = Promise.withResolvers<never>()
  lost.promise.catch(() => {})
  client.once('error', lost.reject)
  const release = async () => client.release(true)
  try {
    await client.query(`set lock_timeout = '${lockTimeout}'`)
    await client.query('select pg_advisory_lock($1)', [lockKey(`tidegate:view:${projection.name}`)])
  } catch (error) {
    await release()
    throw systemCode(error) === '55P03'
      ? new Error(`Another process is already filling ${projection.name}.`)
      : error
  }
  return { lost: lost.promise, release }
}

const stopMessage = ({ topic, partition, offset }: Position, error: unknown): string => {
  const problem = error instanceof ViewFailed ? error.message : 'failed to apply the record'
  return `The view is stuck at ${topic}/${partition} offset ${offset}: ${problem}. Restart to try again.`
}

const pollMs = 200
const reportEveryMs = 10_000

// Prints the progress until `until` aborts or, with `once`, the view has caught up.
async function reportProgress(
  project: Project,
  { running, once, until }: { running: RunningProjection; once: boolean; until: AbortSignal },
): Promise<undefined> {
  let reportedAt = Number.NEGATIVE_INFINITY
  let hasCaughtUp = false
  while (!until.aborted) {
    const { done, behind } = await lagOf(project)
    project.onConnected()
    const stalled = running.status().find(({ stopped }) => stopped !== null)
    const stall = stalled ? `; ${partitionName(stalled)} ${stalled.stopped}` : ''
    const isFirstCatchUp = behind === 0 && !hasCaughtUp
    if (isFirstCatchUp || performance.now() - reportedAt > reportEveryMs) {
      const state = behind === 0 ? ': the view is up to date' : stall
      console.error(`${countText(done, 'record')} read, ${behind} to go${state}`)
      reportedAt = performance.now()
    }
    hasCaughtUp ||= behind === 0
    if (once && behind === 0) return
    await delay(pollMs, undefined, { signal: until }).catch(() => {})
  }
}

async function lagOf({
  pool,
  log,
  projection,
}: Project): Promise<{ done: number; behind: number }> {
  const build = await requireCurrentBuild(pool, projection)
  const stored = await loadBuildOffsets(pool, build)
  const lag = { done: 0, behind: 0 }
  for (const topic of projection.topics) {
    const starts = await log.firstPositions(topic)
    const ends = await log.endPositions(topic)
    for (const { first, next, end } of progressOf({ stored, starts, ends })) {
      lag.done += next - first
      lag.behind += Math.max(0, end - next)
    }
  }
  return lag
}
