import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { refuseOtherLog } from '../../../infra/event-store/bound-log.ts'
import { buildOffsets, findBuild, migrateHome } from '../../../infra/event-store/builds.ts'
import type { Projection } from '../../../infra/event-store/projection.ts'
import { pruneBuild, runPruner } from '../../../infra/event-store/prune.ts'
import { type RunningProjection, runProjection } from '../../../infra/event-store/runner.ts'
import { createSkips, type Skips } from '../../../infra/event-store/skips.ts'
import { type Position, placeName } from '../../../infra/log/port.ts'
import { progressOf } from '../../../infra/log/progress.ts'
import { lockKey } from '../../../infra/postgres/pool.ts'
import { systemCode } from '../../../infra/thrown.ts'
import { onStopSignals } from '../lifetime.ts'
import { type Stores, withStores } from '../operator/core.ts'
import { untilBothAnswer } from './away.ts'
import { namingRecords } from './poison.ts'
import { endedIn, projectionOf } from './projection.ts'
import { loadView } from './view.ts'
import { ViewFailed } from './view-failed.ts'

export interface ProjectFlags {
  once: boolean
}

type Project = Stores & {
  projection: Projection
  skips: Skips
  signal: AbortSignal
  /** Database and log have answered. */
  onAnswer: () => void
}

/** Fills the view of the file until a signal comes, or with `once` until it has all that the log has now. */
export async function runProject(file: string, flags: ProjectFlags): Promise<void> {
  const view = await loadView(file)
  const projection = projectionOf(view, path.basename(file))
  const opensKeys = view.session === undefined ? false : 'ifThere'
  const signal = endingSignal(flags)
  await untilBothAnswer(
    (onAnswer) =>
      withStores(
        async (stores) => {
          await refuseOtherLog(stores.pool, stores.log)
          const codec = namingRecords(stores.codec)
          await using stack = new AsyncDisposableStack()
          const skips = createSkips({ ...stores, codec })
          stack.defer(() => skips.close())
          const project = { ...stores, codec, projection, skips, signal, onAnswer }
          if (view.session && !stores.dataKeys)
            console.error(
              'There are no master keys, so what is encrypted in events stays closed to the view.',
            )
          await keepUp(project, flags)
        },
        { opensKeys, isLogReadOnly: true, logsErrorsOnly: true },
      ),
    { signal, isLogEmbedded: !process.env.KAFKA_BROKERS },
  )
}

const stopWithinMs = 3000

// Rows and offsets are written in one transaction, so nothing is lost where the end is cut short.
function endingSignal({ once }: ProjectFlags): AbortSignal {
  const ending = new AbortController()
  onStopSignals(
    () => {
      // What was to be done once is not done.
      if (once) process.exitCode = 1
      ending.abort()
      setTimeout(() => process.exit(), stopWithinMs).unref()
    },
    () => process.exit(1),
  )
  return ending.signal
}

async function keepUp(project: Project, { once }: ProjectFlags): Promise<void> {
  const { pool, projection, logger, signal } = project
  await using stack = new AsyncDisposableStack()
  const held = await holdView(project)
  stack.defer(held.release)
  const dropped = await migrateHome(pool, projection)
  if (dropped !== undefined)
    console.error(
      `Dropped version ${dropped} of ${projection.name}. Reading the log again for version ${projection.version}.`,
    )
  const failing = Promise.withResolvers<string>()
  const onStopped = (at: Position, error: unknown) => failing.resolve(stopMessage(at, error))
  const applied = { advance: () => {}, onAdvance: () => () => {} }
  // While the database or the log is away the runner repeats its warnings, and the view says it once.
  const errorsOnly = logger.child({}, { level: 'error' })
  const running = await runProjection({ ...project, logger: errorsOnly, applied, onStopped })
  stack.defer(() => running.stop())
  const findEnded = endedIn(projection)
  if (projection.createPrune) {
    const pruner = runPruner({ pool, projection, findEnded, logger })
    stack.defer(() => pruner.stop())
  }
  const following = new AbortController()
  stack.defer(() => following.abort())
  const until = AbortSignal.any([signal, following.signal])
  const why = await Promise.race([
    failing.promise,
    held.lost,
    follow(project, { running, once, until }),
  ])
  if (why !== undefined) throw new ViewFailed(why)
  const prune = once && !signal.aborted ? projection.createPrune?.() : undefined
  if (!prune) return
  const build = await findBuild(pool, projection)
  await pruneBuild({ pool, build, prune, ended: await findEnded(pool) })
}

// Postgres frees within about ten seconds what a machine held that vanished.
const lockTimeout = '12s'

/** Another process would read rows while this one changes them. `lost` rejects when the connection that holds it is gone. */
async function holdView({ pool, projection }: Project) {
  const holder = await pool.connect()
  const lost = Promise.withResolvers<never>()
  lost.promise.catch(() => {})
  holder.once('error', lost.reject)
  const release = async () => holder.release(true)
  try {
    await holder.query(`set lock_timeout = '${lockTimeout}'`)
    await holder.query('select pg_advisory_lock($1)', [lockKey(`tidegate:view:${projection.name}`)])
  } catch (error) {
    await release()
    throw systemCode(error) === '55P03'
      ? new Error(`Another process fills ${projection.name}.`)
      : error
  }
  return { lost: lost.promise, release }
}

const stopMessage = ({ topic, partition, offset }: Position, error: unknown): string => {
  const what = error instanceof ViewFailed ? error.message : 'the record cannot be applied'
  return `The view stands still at ${topic}/${partition} offset ${offset}: ${what}. The next start tries it again.`
}

const pollMs = 200
const reportEveryMs = 10_000

async function follow(
  project: Project,
  { running, once, until }: { running: RunningProjection; once: boolean; until: AbortSignal },
): Promise<undefined> {
  let reportedAt = Number.NEGATIVE_INFINITY
  let hasCaughtUp = false
  while (!until.aborted) {
    const { done, behind } = await lagOf(project)
    project.onAnswer()
    const stalled = running.status().find(({ stopped }) => stopped !== null)
    const stall = stalled ? `; ${placeName(stalled)} ${stalled.stopped}` : ''
    const isFirstCatchUp = behind === 0 && !hasCaughtUp
    if (isFirstCatchUp || performance.now() - reportedAt > reportEveryMs) {
      const state = behind === 0 ? ': the view is up to date' : stall
      console.error(`${done} records read, ${behind} to go${state}`)
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
  const build = await findBuild(pool, projection)
  const stored = await buildOffsets(pool, build)
  const lag = { done: 0, behind: 0 }
  for (const topic of projection.topics) {
    const firsts = await log.firstPositions(topic)
    const ends = await log.endPositions(topic)
    for (const { first, next, end } of progressOf({ stored, firsts, ends })) {
      lag.done += next - first
      lag.behind += Math.max(0, end - next)
    }
  }
  return lag
}
