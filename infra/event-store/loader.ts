import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import type { Logger } from 'pino'
import { type EventLog, type Place, type Position, placeName } from '../log/port.ts'
import { offsetIn } from '../log/read-topic.ts'
import { applyBatches } from './apply-batch.ts'
import { type Build, buildOffsets, openPartition } from './builds.ts'
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
  /** Others load the other partitions. Absent = it loads all. */
  share?: PartitionShare | undefined
}

/** The partitions p with p % of = index. */
export interface PartitionShare {
  index: number
  of: number
}

export interface Loader {
  /** Rejects when an event cannot be applied. */
  waitFor(positions: Position[]): Promise<void>
  stop(): Promise<void>
}

// Larger than a runner's: nobody waits for one event, and the statements are set-based.
const maxRecords = 4000
const overtakeDelayMs = 20

/**
 * Fills a build from its stored offsets, 0 at first, never beyond the live one, so that both can be brought to the same
 * offsets.
 */
export async function startLoader(options: LoaderOptions): Promise<Loader> {
  const { projection, build, live, log, pool, codec, logger, skips } = options
  const { share = { index: 0, of: 1 } } = options
  const isRead = ({ partition }: Place) => partition % share.of === share.index
  let moved = Promise.withResolvers<void>()

  const consumer = await consumeEvents({
    who: `rebuild of ${projection.name}`,
    group: `tidegate.rebuild.${build.schema}.${share.index}`,
    topics: projection.topics,
    types: projection.types,
    log,
    codec: { ...codec, fromRecord: codec.fromRecordOnce },
    logger,
    skips,
    maxRecords,
    startOffset: (first) => (isRead(first) ? openPartition(pool, build, first) : endOf(first)),
    apply,
  })

  async function endOf({ topic, partition }: Place): Promise<number> {
    return offsetIn(await log.endPositions(topic), partition)
  }

  async function apply(batches: EventBatch[]): Promise<Position[]> {
    const limits = await liveOffsets()
    const ofOthers = batches.filter((batch) => !isRead(batch)).map(endOfBatch)
    const ofShare = batches
      .filter(isRead)
      .map((batch) => upTo(batch, limits.get(placeName(batch)) ?? 0))
    return [...ofOthers, ...(ofShare.length > 0 ? await write(ofShare) : [])]
  }

  async function write(batches: EventBatch[]): Promise<Position[]> {
    const outcome = await applyBatches({ pool, projection, build, batches })
    if (outcome.kind !== 'applied') throw new Error(`the build is ${outcome.kind}`)
    if (batches.every(({ events }) => events.length === 0)) await delay(overtakeDelayMs)
    moved.resolve()
    moved = Promise.withResolvers()
    return outcome.next
  }

  async function liveOffsets(): Promise<Map<string, number>> {
    return new Map((await buildOffsets(pool, live)).map((at) => [placeName(at), at.offset]))
  }

  // Behind the positions the live build may stand still at the same record. Where it went on because an operator left the
  // record out, it will be left out here, too, when it is tried again.
  async function isReached(positions: Position[]): Promise<boolean> {
    const status = new Map(consumer.status().map((one) => [placeName(one), one]))
    const missing = positions.filter(
      (position) => (status.get(placeName(position))?.nextOffset ?? 0) < position.offset,
    )
    for (const position of missing) {
      const { topic, partition } = position
      const { nextOffset: offset = 0, stopped = null } = status.get(placeName(position)) ?? {}
      if (stopped === null || (await skips.has({ topic, partition, offset }))) continue
      throw new Error(
        `the new build cannot apply ${topic}/${partition} offset ${offset}: ${stopped}`,
      )
    }
    return missing.length === 0
  }

  return {
    async waitFor(positions) {
      while (!(await isReached(positions.filter(isRead))))
        await Promise.race([moved.promise, delay(overtakeDelayMs)])
    },
    stop: () => consumer.stop(),
  }
}

const endOfBatch = ({ topic, partition, end }: EventBatch): Position => ({
  topic,
  partition,
  offset: end,
})

function upTo(batch: EventBatch, limit: number): EventBatch {
  if (batch.end <= limit) return batch
  const events = batch.events.filter(({ position }) => position.offset < limit)
  return { ...batch, events, end: Math.max(limit, batch.expected) }
}
