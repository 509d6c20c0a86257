import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import type { Logger } from 'pino'
import type { Batch, EventLog, Position } from '../log/port.ts'
import { applyEvents, type DecodedBatch, decodeBatch, HandlerFailed, isTransient } from './apply-batch.ts'
import { type Build, buildOffsets, openPartition } from './builds.ts'
import type { EventCodec } from './codec.ts'
import type { Projection } from './projection.ts'

export interface LoaderOptions {
  projection: Projection
  build: Build
  live: Build
  log: EventLog
  pool: pg.Pool
  codec: EventCodec
  logger: Logger
  onEvents: (count: number) => void
}

export interface Loader {
  waitFor(positions: Position[]): Promise<void>
  stop(): Promise<void>
}

// Larger than a runner's: nobody waits for one event, and the statements are set-based.
const maxRecords = 2000
const overtakeDelayMs = 20

/**
 * Fills a build from offset 0, never beyond the live one, so that both can be brought to the same offsets. An
 * event that cannot be applied ends it.
 */
export async function startLoader(options: LoaderOptions): Promise<Loader> {
  const { projection, build, live, log, pool, codec, logger } = options
  const progress = new Map<string, number>()
  const failure = Promise.withResolvers<never>()
  failure.promise.catch(() => {})
  let moved = Promise.withResolvers<void>()
  const keyOf = ({ topic, partition }: Omit<Position, 'offset'>) => `${topic}/${partition}`

  function advance(end: Position): void {
    progress.set(keyOf(end), end.offset)
    moved.resolve()
    moved = Promise.withResolvers()
  }

  /** Returns the offset to replay from; undefined = none. */
  async function load(decoded: DecodedBatch): Promise<number | undefined> {
    const expected = progress.get(keyOf(decoded.end))
    const outcome = await applyEvents({ pool, projection, build, ...decoded, expected })
    if (outcome.kind !== 'applied' && outcome.kind !== 'replay')
      throw new Error(`the build is ${outcome.kind}`)
    advance({ ...decoded.end, offset: outcome.nextOffset })
    if (outcome.kind === 'replay') return outcome.nextOffset
    options.onEvents(decoded.events.length)
    return undefined
  }

  async function handleBatch(batch: Batch): Promise<number | undefined> {
    const limit = await liveOffset(pool, live, batch)
    const records = batch.records.filter((record) => record.offset < limit)
    const decoded = decodeBatch(codec, { ...batch, records })
    try {
      const replayFrom = decoded.events.length > 0 ? await load(decoded) : undefined
      if (replayFrom !== undefined) return replayFrom
      if (decoded.poison) throw new HandlerFailed(decoded.poison.error)
    } catch (error) {
      if (error instanceof HandlerFailed && !isTransient(error.cause))
        failure.reject(failedAt(decoded, error))
      throw error
    }
    if (records.length === batch.records.length) return undefined
    await delay(overtakeDelayMs)
    return batch.records[records.length]?.offset
  }

  const consumer = await log.consume({
    group: `tidegate.rebuild.${build.schema}`,
    topics: projection.topics,
    maxRecords,
    async startOffset(topic, partition) {
      const offset = await openPartition(pool, build, { topic, partition })
      advance({ topic, partition, offset })
      return offset
    },
    handleBatch,
    onError: (err, position) =>
      logger.debug({ err, projection: projection.name, position }, 'rebuild will try again'),
  })

  const isReached = (position: Position) => (progress.get(keyOf(position)) ?? 0) >= position.offset
  return {
    async waitFor(positions) {
      while (!positions.every(isReached)) await Promise.race([moved.promise, failure.promise])
    },
    stop: () => consumer.stop(),
  }
}

async function liveOffset(pool: pg.Pool, live: Build, { topic, partition }: Batch): Promise<number> {
  const offsets = await buildOffsets(pool, live)
  return offsets.find((known) => known.topic === topic && known.partition === partition)?.offset ?? 0
}

function failedAt({ end, events }: DecodedBatch, { cause }: HandlerFailed): Error {
  const from = events[0]?.position.offset ?? end.offset
  return new Error(
    `the new build cannot apply ${end.topic}/${end.partition} offsets ${from} to ${end.offset}`,
    { cause },
  )
}
