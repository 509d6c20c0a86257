import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import type { Logger } from 'pino'
import { type EventLog, type Position, partitionName, type TopicPartition } from '../log/port.ts'
import { offsetIn } from '../log/read-topic.ts'
import { applyBatches } from './apply-batch.ts'
import { type Build, initStartOffset, loadBuildOffsets } from './builds.ts'
import type { EventCodec } from './codec.ts'
import { consumeEvents } from './consumer.ts'
import type { EventBatch } from './event-batch.ts'
import type { Projection } from './projection.ts'
import type { Skips } from './skips.ts'

export interface LoaderOptions {
  projection: Projection
  build: Build
  live: Build
  log: EventLog
  pool: pg.Pool
  codec: EventCodec
  logger: Logger
  skips: Pick<Skips, 'has'>
  /** The partitions to load, if several workers share them. Absent = all. */
  share?: PartitionShare | undefined
}

/** The partitions with `partition % count === index`. */
export interface PartitionShare {
  index: number
  count: number
}

export interface Loader {
  /** Resolves once the build has reached the positions. Rejects if an event can't be applied. */
  waitFor(positions: Position[]): Promise<void>
  stop(): Promise<void>
}

// Larger than a runner's batches: latency doesn't matter here, and large batches need fewer statements.
const maxRecords = 4000
const catchUpPollMs = 20

/**
 * Fills a build (a schema with the projection's tables) from its stored offsets on; a new build starts at 0. Never
 * reads past the live build's offsets, so both can stop at the same ones.
 */
export async function startLoader(options: LoaderOptions): Promise<Loader> {
  const { projection, build, live, log, pool, codec, logger, skips } = options
  const { share = { index: 0, count: 1 } } = options
  const isInShare = ({ partition }: TopicPartition) => partition % share.count === share.index
  let nextWrite = Promise.withResolvers<void>()

  const consumer = await consumeEvents({
    consumerName: `rebuild of ${projection.name}`,
    group: `tidegate.rebuild.${build.schema}.${share.index}`,
    topics: projection.topics,
    types: projection.types,
    log,
    codec: { ...codec, fromRecord: codec.fromRecordUncached },
    logger,
    skips,
    maxRecords,
    startOffset: (first) => (isInShare(first) ? initStartOffset(pool, build, first) : endOf(first)),
    apply,
  })

  async function endOf({ topic, partition }: TopicPartition): Promise<number> {
    return offsetIn(await log.endPositions(topic), partition)
  }

  async function apply(batches: EventBatch[]): Promise<Position[]> {
    const limits = await loadLimits()
    const skipped = batches.filter((batch) => !isInShare(batch)).map(endOfBatch)
    const toWrite = batches
      .filter(isInShare)
      .map((batch) => truncateAt(batch, limits.get(partitionName(batch)) ?? 0))
    return [...skipped, ...(toWrite.length > 0 ? await write(toWrite) : [])]
  }

  async function write(batches: EventBatch[]): Promise<Position[]> {
    const outcome = await applyBatches({ pool, projection, build, batches })
    if (outcome.kind !== 'applied') throw new Error(`the build is ${outcome.kind}`)
    if (batches.every(({ events }) => events.length === 0)) await delay(catchUpPollMs)
    nextWrite.resolve()
    nextWrite = Promise.withResolvers()
    return outcome.next
  }

  async function loadLimits(): Promise<Map<string, number>> {
    return new Map((await loadBuildOffsets(pool, live)).map((at) => [partitionName(at), at.offset]))
  }

  // Throws if a partition is stuck before its position at a record that no operator has skipped.
  async function hasReached(positions: Position[]): Promise<boolean> {
    const status = new Map(consumer.status().map((entry) => [partitionName(entry), entry]))
    const missing = positions.filter(
      (position) => (status.get(partitionName(position))?.nextOffset ?? 0) < position.offset,
    )
    for (const position of missing) {
      const { topic, partition } = position
      const { nextOffset: offset = 0, stopped = null } = status.get(partitionName(position)) ?? {}
      if (stopped === null || (await skips.has({ topic, partition, offset }))) continue
      throw new Error(`the new build failed at ${topic}/${partition} offset ${offset}: ${stopped}`)
    }
    return missing.length === 0
  }

  return {
    async waitFor(positions) {
      while (!(await hasReached(positions.filter(isInShare))))
        await Promise.race([nextWrite.promise, delay(catchUpPollMs)])
    },
    stop: () => consumer.stop(),
  }
}

const endOfBatch = ({ topic, partition, end }: EventBatch): Position => ({
  topic,
  partition,
  offset: end,
})

function truncateAt(batch: EventBatch, limit: number): EventBatch {
  if (batch.end <= limit) return batch
  const events = batch.events.filter(({ position }) => position.offset < limit)
  return { ...batch, events, end: Math.max(limit, batch.expected) }
}
