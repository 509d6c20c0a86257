import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import type { Logger } from 'pino'
import { type EventLog, type Position, placeName } from '../log/port.ts'
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
  onEvents: (count: number) => void
}

export interface Loader {
  /** Rejects when an event cannot be applied. */
  waitFor(positions: Position[]): Promise<void>
  stop(): Promise<void>
}

// Larger than a runner's: nobody waits for one event, and the statements are set-based.
const maxRecords = 4000
const overtakeDelayMs = 20

/** Fills a build from offset 0, never beyond the live one, so that both can be brought to the same offsets. */
export async function startLoader(options: LoaderOptions): Promise<Loader> {
  const { projection, build, live, log, pool, codec, logger, skips } = options
  const who = `rebuild of ${projection.name}`
  let moved = Promise.withResolvers<void>()

  function tellMoved(): void {
    moved.resolve()
    moved = Promise.withResolvers()
  }

  async function apply(batches: EventBatch[]): Promise<Position[]> {
    const limits = await liveOffsets()
    const some = batches.map((batch) => upTo(batch, limits.get(placeName(batch)) ?? 0))
    const outcome = await applyBatches({ pool, projection, build, batches: some }).finally(tellMoved)
    if (outcome.kind !== 'applied') throw new Error(`the build is ${outcome.kind}`)
    const events = some.reduce((sum, batch) => sum + batch.events.length, 0)
    if (events > 0) options.onEvents(events)
    else await delay(overtakeDelayMs)
    return outcome.next
  }

  async function liveOffsets(): Promise<Map<string, number>> {
    return new Map((await buildOffsets(pool, live)).map((at) => [placeName(at), at.offset]))
  }

  const consumer = await consumeEvents({
    who,
    group: `tidegate.rebuild.${build.schema}`,
    topics: projection.topics,
    types: projection.types,
    log,
    codec,
    logger,
    skips,
    maxRecords,
    keepsNoOffsets: projection.home !== undefined,
    startOffset: (topic, partition) => openPartition(pool, build, { topic, partition }),
    apply,
  })

  function isReached({ topic, partition, offset }: Position): boolean {
    const status = consumer.status().find((one) => one.topic === topic && one.partition === partition)
    return (status?.nextOffset ?? 0) >= offset
  }

  function failOnStop(): void {
    const stopped = consumer.status().find((status) => status.stopped)
    if (!stopped) return
    const { topic, partition, nextOffset } = stopped
    throw new Error(
      `the new build cannot apply ${topic}/${partition} offset ${nextOffset}: ${stopped.stopped}`,
    )
  }

  return {
    async waitFor(positions) {
      for (failOnStop(); !positions.every(isReached); failOnStop())
        await Promise.race([moved.promise, delay(overtakeDelayMs)])
    },
    stop: () => consumer.stop(),
  }
}

function upTo(batch: EventBatch, limit: number): EventBatch {
  if (batch.end <= limit) return batch
  const events = batch.events.filter(({ position }) => position.offset < limit)
  return { ...batch, events, end: Math.max(limit, batch.expected) }
}
