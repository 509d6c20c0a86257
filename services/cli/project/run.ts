import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { refuseOtherLog } from '../../../infra/event-store/bound-log.ts'
import { type Build, buildOffsets, findBuild, migrateHome } from '../../../infra/event-store/builds.ts'
import type { Projection } from '../../../infra/event-store/projection.ts'
import { pruneBuild, runPruner } from '../../../infra/event-store/prune.ts'
import { type RebuildOptions, type RebuildReport, rebuild } from '../../../infra/event-store/rebuild.ts'
import { runProjection } from '../../../infra/event-store/runner.ts'
import { createSkips, type Skips } from '../../../infra/event-store/skips.ts'
import { backoffMs, LogUnavailable, type Position, placeName } from '../../../infra/log/port.ts'
import { lockKey } from '../../../infra/postgres/pool.ts'
import { onStopSignals } from '../lifetime.ts'
import { type Stores, withStores } from '../operator/core.ts'
import { progress, tellResume } from '../progress.ts'
import { namingRecords } from './poison.ts'
import { endedIn, projectionOf } from './projection.ts'
import { loadView } from './view.ts'
import { ViewFailed } from './view-failed.ts'

export interface ProjectFlags {
  once: boolean
  rebuild: boolean
  acceptDifferences: boolean
  fromScratch: boolean
}

type Project = Stores & { projection: Projection; skips: Skips }

/** Fills the view of the file until a signal comes, or with `once` until it has all that the log has now. */
export async function runProject(file: string, flags: ProjectFlags): Promise<void> {
  const view = await loadView(file)
  const projection = projectionOf(view, path.basename(file))
  const opensKeys = view.session === undefined ? false : 'ifThere'
  await withStores(
    async (stores) => {
      if (view.session && !stores.dataKeys)
        console.error('There are no master keys, so what is encrypted in events stays closed to the view.')
      await whileLogIsAway(() => stores.log.check())
      await refuseOtherLog(stores.pool, stores.log)
      const codec = namingRecords(stores.codec)
      await using stack = new AsyncDisposableStack()
      const skips = createSkips({ ...stores, codec })
      stack.defer(() => skips.close())
      const project = { ...stores, codec, projection, skips }
      const live = await migrateHome(stores.pool, projection)
      if (flags.rebuild) return rebuildView(project, flags)
      await keepUp(project, live, flags)
    },
    { opensKeys, isLogReadOnly: true },
  )
}

async function whileLogIsAway<T>(work: () => Promise<T>, failures = 1): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof LogUnavailable)) throw error
    if (failures === 1) console.error('The log does not answer. The view waits for it.')
    await delay(backoffMs(failures))
    return whileLogIsAway(work, failures + 1)
  }
}

async function rebuildView(
  project: Project,
  { acceptDifferences, fromScratch }: ProjectFlags,
): Promise<void> {
  printReport(await build(project, { acceptDifferences, fromScratch }))
}

function build(
  project: Project,
  options: Pick<RebuildOptions, 'acceptDifferences' | 'fromScratch'>,
): Promise<RebuildReport> {
  const print = progress()
  const onProgress = ({ events, total }: { events: number; total: number }) =>
    print(`${events} events; the log has ${total} records`)
  return rebuild({
    ...project,
    ...options,
    findEnded: endedIn(project.projection),
    onProgress,
    onResume: tellResume,
  })
}

function printReport({ events, seconds, tables, switched }: RebuildReport): void {
  console.log(`${events} events in ${seconds.toFixed(1)} s`)
  for (const { table, rows, equal, differences } of tables)
    console.log(`${table}: ${rows} rows, ${equal ? 'equal' : `${differences.length} differences or more`}`)
  console.log(switched ? 'Readers use the new build.' : 'Readers still use the old build.')
  if (!switched) process.exitCode = 1
}

async function keepUp(project: Project, live: Build, { once }: ProjectFlags): Promise<void> {
  const { pool, projection, logger } = project
  await using stack = new AsyncDisposableStack()
  stack.defer(await holdView(project))
  if (live.version !== projection.version) await buildVersion(project, live)
  const failing = Promise.withResolvers<string>()
  const onStopped = (at: Position, error: unknown) => failing.resolve(stopMessage(at, error))
  const applied = { advance: () => {}, onAdvance: () => () => {} }
  const running = await runProjection({ ...project, applied, onStopped })
  stack.defer(() => running.stop())
  const findEnded = endedIn(projection)
  if (projection.createPrune) {
    const pruner = runPruner({ pool, projection, findEnded, logger })
    stack.defer(() => pruner.stop())
  }
  const ending = new AbortController()
  onStopSignals(
    () => ending.abort(),
    () => process.exit(1),
  )
  const why = await Promise.race([failing.promise, follow(project, { once, signal: ending.signal })])
  ending.abort()
  if (why !== undefined) throw new ViewFailed(why)
  const prune = once ? projection.createPrune?.() : undefined
  if (!prune) return
  const build = await findBuild(pool, projection)
  await pruneBuild({ pool, build, prune, ended: await findEnded(pool) })
}

/** Another process would read rows while this one changes them. */
async function holdView({ pool, projection }: Project): Promise<() => Promise<void>> {
  const holder = await pool.connect()
  const { rows } = await holder.query<{ locked: boolean }>('select pg_try_advisory_lock($1) as locked', [
    lockKey(`tidegate:view:${projection.name}`),
  ])
  if (!rows[0]?.locked) {
    holder.release()
    throw new Error(`Another process fills ${projection.name}.`)
  }
  return async () => holder.release(true)
}

async function buildVersion(project: Project, live: Build): Promise<void> {
  const { projection } = project
  console.error(`${projection.name} has version ${live.version}. ${projection.version} is built beside it.`)
  const other = projection.tables.map((name) => [name, 'not compared'] as const)
  await build(
    { ...project, projection: { ...projection, comparedRows: Object.fromEntries(other) } },
    { acceptDifferences: true },
  )
}

const stopMessage = ({ topic, partition, offset }: Position, error: unknown): string => {
  const what = error instanceof ViewFailed ? error.message : 'the record cannot be applied'
  return `The view stands still at ${topic}/${partition} offset ${offset}: ${what}. The next start tries it again.`
}

const pollMs = 200
const reportEveryMs = 10_000

interface Following {
  once: boolean
  signal: AbortSignal
}

async function follow(project: Project, { once, signal }: Following): Promise<undefined> {
  const print = progress()
  let reportedAt = Number.NEGATIVE_INFINITY
  while (!signal.aborted) {
    const { done, behind } = await whileLogIsAway(() => lagOf(project))
    const line = `${done} records read, ${behind} to go`
    if (behind > 0) print(line)
    else if (once || performance.now() - reportedAt > reportEveryMs) {
      console.error(`${line}: the view is up to date`)
      reportedAt = performance.now()
    }
    if (once && behind === 0) return
    await delay(pollMs, undefined, { signal }).catch(() => {})
  }
}

async function lagOf({ pool, log, projection }: Project): Promise<{ done: number; behind: number }> {
  const build = await findBuild(pool, projection)
  const stored = new Map((await buildOffsets(pool, build)).map((at) => [placeName(at), at.offset]))
  const lag = { done: 0, behind: 0 }
  for (const topic of projection.topics) {
    const firsts = new Map((await log.firstPositions(topic)).map((at) => [placeName(at), at.offset]))
    for (const end of await log.endPositions(topic)) {
      const first = firsts.get(placeName(end)) ?? 0
      const next = Math.max(stored.get(placeName(end)) ?? 0, first)
      lag.done += next - first
      lag.behind += Math.max(0, end.offset - next)
    }
  }
  return lag
}
