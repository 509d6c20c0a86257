import type pg from 'pg'
import type { Logger } from 'pino'
import type { Batch, EventLog, Position } from '../log/port.ts'
import type { Applied } from './applied.ts'
import {
  type ApplyOutcome,
  applyEvents,
  type DecodedBatch,
  decodeBatch,
  HandlerFailed,
  isTransient,
} from './apply-batch.ts'
import { type Build, findBuild, liveBuildOffsets, openPartition } from './builds.ts'
import type { EventCodec } from './codec.ts'
import { consumeWithReplay, createPartitions, PartitionHalted, type PartitionStatus } from './partitions.ts'
import type { Projection } from './projection.ts'

export interface RunnerOptions {
  projection: Projection
  log: EventLog
  pool: pg.Pool
  codec: EventCodec
  applied: Applied
  logger: Logger
  partitionsConcurrently?: number
}

export interface RunningProjection {
  status(): PartitionStatus[]
  stop(): Promise<void>
}

type Settled = Extract<ApplyOutcome, { nextOffset: number }>
type AppliedOutcome = Extract<ApplyOutcome, { kind: 'applied' }>

export async function runProjection(options: RunnerOptions): Promise<RunningProjection> {
  const { projection, log, pool, logger } = options
  const partitions = createPartitions({ who: `projection ${projection.name}`, logger })
  let build: Build | undefined

  const currentBuild = async () => {
    build ??= await findBuild(pool, projection)
    return build
  }

  async function apply(decoded: DecodedBatch): Promise<Settled> {
    const current = await currentBuild()
    const expected = partitions.of(decoded.end).nextOffset
    const outcome = await applyEvents({ pool, projection, build: current, ...decoded, expected })
    if (outcome.kind === 'switched') build = undefined
    else if (outcome.kind === 'unknown_partition') await openPartition(pool, current, decoded.end)
    else return outcome
    return apply(decoded)
  }

  function advance(end: Position, { nextOffset, subjects }: AppliedOutcome): void {
    const status = partitions.of(end)
    status.nextOffset = nextOffset
    options.applied.advance({ projection: projection.name, next: { ...end, offset: nextOffset }, subjects })
  }

  /** Applies one by one, so that the events before the failing one are applied and its position is known. */
  async function applySingly({ events, end }: DecodedBatch): Promise<void> {
    for (const event of events) {
      const next = { ...end, offset: event.position.offset + 1 }
      try {
        const outcome = await apply({ events: [event], end: next, poison: undefined })
        if (outcome.kind === 'applied') advance(end, outcome)
      } catch (error) {
        if (!isPoison(error)) throw error
        partitions.halt({ position: event.position, error: error.cause })
      }
    }
  }

  async function handleBatch(batch: Batch): Promise<number | undefined> {
    const decoded = decodeBatch(options.codec, batch)
    const status = partitions.of(batch)
    try {
      const outcome = await apply(decoded)
      status.nextOffset = outcome.nextOffset
      if (outcome.kind === 'replay') return outcome.nextOffset
      advance(decoded.end, outcome)
    } catch (error) {
      if (!isPoison(error)) throw error
      await applySingly(decoded)
    }
    const { poison } = decoded
    // An operator may have moved the offset past it by hand.
    if (poison && poison.position.offset >= status.nextOffset) partitions.halt(poison)
    status.halted = null
    return poison && status.nextOffset
  }

  const stopListening = options.applied.onAdvance(projection.name, ({ offset, ...which }) => {
    // After a rebalance another process may have got past what halted this one.
    const status = partitions.of(which)
    if (offset > status.nextOffset) status.halted = null
  })

  async function startOffset(topic: string, partition: number): Promise<number> {
    const status = partitions.of({ topic, partition })
    try {
      // Readers may have been switched while no record came; what the old build had is gone.
      build = undefined
      status.nextOffset = await openPartition(pool, await currentBuild(), { topic, partition })
      status.halted = null
      return status.nextOffset
    } catch (error) {
      // As with tables of another version: nothing is applied, and readiness is where that must show.
      status.halted = `not started: ${error instanceof Error ? error.message : error}`
      throw error
    }
  }

  function onError(error: unknown, position?: Position): void {
    if (error instanceof PartitionHalted) return
    logger.warn({ err: error, projection: projection.name, position }, 'projection will try again')
  }

  const consume = () =>
    log.consume({
      group: `tidegate.projection.${projection.name}`,
      topics: projection.topics,
      partitionsConcurrently: options.partitionsConcurrently ?? 3,
      startOffset,
      handleBatch,
      onError,
    })
  const consumer = await consumeWithReplay({
    partitions,
    readStored: () => liveBuildOffsets(pool, projection),
    consume,
    onError,
    onRewind: (lost) => logger.warn({ projection: projection.name, lost }, 'lost by Postgres, applied again'),
  })
  return {
    status: partitions.all,
    async stop() {
      await consumer.stop()
      stopListening()
    },
  }
}

function isPoison(error: unknown): error is HandlerFailed {
  return error instanceof HandlerFailed && !isTransient(error.cause)
}
