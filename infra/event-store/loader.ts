import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import type { Logger } from 'pino'
import { type EventLog, type Position, partitionName, type TopicPartition } from '../log/port.ts'
import { offsetIn } from '../log/read-topic.ts'
import { applyBatches } from './apply-batch.ts'
import { type Build, buildOffsets, initStartOffset } from './builds.ts'
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

/** The partitions with `partition % of === index`. */
export interface PartitionShare {
  index: number
  of: number
}

export interface Loader {
  /** Resolves once the build has reached the positions. Rejects if an event can't be applied. */
  waitFor(positions: Position[]): Promise<void>
  stop(): Promise<void>
}

// Larger than a runner's batches, because latency doesn't matter and the statements are set-based.
const maxRecords = 4000
const catchUpPollMs = 20

/**
 * Fills a build (one schema with a projection's tables) from its stored offsets, 0 at first. Never passes the live build, so both can stop at the same offsets.
 */
export async function startLoader(options: LoaderOptions): Promise<Loader> {
  const { projection, build, live, log, pool, codec, logger, skips } = options
  const { share = { index: 0, of: 1 } } = options
  const isInShare = ({ partition }: TopicPartition) => partition % share.of === share.index
  let moved = Promise.withResolvers<void>()

  const consumer = await consumeEvents({
    consumerName: `rebuild of ${projection.name}`,
    group: `tidegate.rebuild.${build.schema}.${share.index}`,
    topics: projection.topics,
    types: projection.types,
    log,
    codec: { ...codec, fromRecord: codec.fromRecordOnce },
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
    const limits = await liveOffsets()
    const skipped = batches.filter((batch) => !isInShare(batch)).map(endOfBatch)
    const toApply = batches
      .filter(isInShare)
      .map((batch) => truncateAt(batch, limits.get(partitionName(batch)) ?? 0))
    return [...skipped, ...(toApply.length > 0 ? await write(toApply) : [])]
  }

  async function write(batches: EventBatch[]): Promise<Position[]> {
    const outcome = await applyBatches({ pool, projection, build, batches })
    if (outcome.kind !== 'applied') throw new Error(`the build is ${outcome.kind}`)
    if (batches.every(({ events }) => events.length === 0)) await delay(catchUpPollMs)
    moved.resolve()
    moved = Promise.withResolvers()
    return outcome.next
  }

  async function liveOffsets(): Promise<Map<string, number>> {
    return new Map((await buildOffsets(pool, live)).map((at) => [partitionName(at), at.offset]))
  }

  // Throws if a partition is stuck before its position, unless an operator has skipped the record: the retry will then
  // skip it here too.
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
        await Promise.race([moved.promise, delay(catchUpPollMs)])
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
