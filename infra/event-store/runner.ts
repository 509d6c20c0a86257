import type pg from 'pg'
import type { Logger } from 'pino'
import type { EventLog, Position } from '../log/port.ts'
import type { AppliedOffsets } from './applied.ts'
import { applyBatches } from './apply-batch.ts'
import { type Build, initStartOffset, requireCurrentBuild } from './builds.ts'
import type { EventCodec } from './codec.ts'
import { consumeEvents, type EventConsumerOptions, type PartitionStatus } from './consumer.ts'
import type { EventBatch } from './event-batch.ts'
import type { Projection } from './projection.ts'
import type { Skips } from './skips.ts'

export interface RunnerOptions {
  projection: Projection
  log: EventLog
  pool: pg.Pool
  codec: EventCodec
  applied: Pick<AppliedOffsets, 'reportCommit' | 'onAdvance'>
  logger: Logger
  skips: Pick<Skips, 'has'>
  /** Called once when a bad event stops its partition. Default: logs an error. */
  onStopped?: EventConsumerOptions['onStopped']
  onExpired?: EventConsumerOptions['onExpired']
}

export interface RunningProjection {
  status(): PartitionStatus[]
  stop(): Promise<void>
}

/** Keeps the live build of a projection up to date with the log, until stopped. */
export async function runProjection(options: RunnerOptions): Promise<RunningProjection> {
  const { projection, log, pool, codec, applied, logger, skips, onStopped, onExpired } = options
  let build: Build | undefined

  async function apply(batches: EventBatch[]): Promise<Position[]> {
    build ??= await requireCurrentBuild(pool, projection)
    const outcome = await applyBatches({ pool, projection, build, batches })
    if (outcome.kind === 'switched') {
      build = undefined
      return apply(batches)
    }
    const { next, changedIds } = outcome
    applied.reportCommit({ projection: projection.name, next, changedIds })
    return next
  }

  async function startOffset(first: Position): Promise<number> {
    // Another build may have become live while no records arrived, and the old one may be gone.
    build = await requireCurrentBuild(pool, projection)
    return initStartOffset(pool, build, first)
  }

  const consumer = await consumeEvents({
    consumerName: `projection ${projection.name}`,
    group: `tidegate.projection.${projection.name}`,
    topics: projection.topics,
    types: projection.types,
    log,
    codec,
    logger,
    skips,
    batchDelayMs: projection.batchDelayMs,
    onStopped,
    onExpired,
    commitsOffsets: projection.home === undefined,
    startOffset,
    apply,
  })
  const stopListening = applied.onAdvance(projection.name, consumer.notifyAdvanced)
  return {
    status: consumer.status,
    async stop() {
      await consumer.stop()
      stopListening()
    },
  }
}
