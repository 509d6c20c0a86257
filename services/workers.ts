import { openNetwork } from '../infra/ip/network.ts'
import { type PartitionStatus, runProjection } from '../projections/runner.ts'
import { type Core, projections } from './core.ts'
import { runSessionScheduler } from './scoring/scheduler.ts'
import { runScoring } from './scoring/worker.ts'

/** Something that works until it is stopped. */
export interface Running {
  stop(): Promise<void>
  /** Of the partitions that it has met. */
  status?(): PartitionStatus[]
}

export interface WorkerParts {
  /** Which kinds to start. */
  starts: { projections: boolean; scoring: boolean }
  /** Gets what stops them. */
  undo: AsyncDisposableStack
}

/** Scoring is stopped before the projections, so that what it decided last is still applied. */
export async function startWorkers(core: Core, { starts, undo }: WorkerParts): Promise<Running[]> {
  const applying = starts.projections
    ? await startTogether(projections.map((projection) => runProjection({ ...core, projection })))
    : []
  undo.defer(() => stopTogether(applying))
  const scoring = starts.scoring ? await startScoring(core) : []
  undo.defer(() => stopTogether(scoring))
  return [...applying, ...scoring]
}

/** Throws when one of them does not go on with a partition. */
export function noneHalted(running: Running[]): void {
  const halted = running.flatMap((worker) => worker.status?.() ?? []).find((partition) => partition.halted)
  if (halted)
    throw new Error(`${halted.topic}/${halted.partition} stands still at offset ${halted.nextOffset}`)
}

async function startScoring(core: Core): Promise<Running[]> {
  const { CITY_MMDB: cityPath, ASN_MMDB: asnPath, ANONYMOUS_MMDB: anonymousPath } = core.config
  const network = await openNetwork({ cityPath, asnPath, anonymousPath }).catch((cause) => {
    throw new Error(`CITY_MMDB, ASN_MMDB or ANONYMOUS_MMDB cannot be read: ${cause.message}`, { cause })
  })
  return startTogether<Running>([runScoring({ ...core, network }), runSessionScheduler(core)])
}

/** All or none: when one does not start, the others are stopped. */
async function startTogether<T extends Running>(starting: Promise<T>[]): Promise<T[]> {
  const results = await Promise.allSettled(starting)
  const started = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
  const failed = results.find((result) => result.status === 'rejected')
  if (!failed) return started
  await stopTogether(started)
  throw failed.reason
}

async function stopTogether(running: Running[]): Promise<void> {
  await Promise.all(running.map((worker) => worker.stop()))
}
