import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import type { Logger } from 'pino'
import { type EventLog, type Position, placeName } from '../log/port.ts'
import { applyBatches } from './apply-batch.ts'
import { type Build, buildOffsets, openPartition } from './builds.ts'
import type { EventCodec } from './codec.ts'
import { consumeEvents, type EventConsumer, type PartitionStatus } from './consumer.ts'
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

/**
 * Fills a build from its stored offsets, 0 at first, never beyond the live one, so that both can be brought to the same
 * offsets. While one batch is written the next is read and decoded, which takes longer than writing it. Where writing
 * fails, all is read again from the stored offsets and nothing ahead any more, so that the event at fault is found.
 */
export async function startLoader(options: LoaderOptions): Promise<Loader> {
  const { projection, build, live, log, pool, codec, logger, skips } = options
  const who = `rebuild of ${projection.name}`
  let moved = Promise.withResolvers<void>()
  // A projection that says which events have to be applied alone is written over two connections, each with half of the
  // partitions: rows of one half are made while those of the other are written.
  const queues = projection.isExclusive ? [0, 1] : [0]
  const writing = queues.map(() => Promise.resolve())
  let restarted: Promise<void> = Promise.resolve()
  let state: 'ahead' | 'failed' | 'oneByOne' | 'stopped' = 'ahead'
  let consumer = consume()
  await consumer

  const isIn = (some: typeof state) => state === some

  // Once, whichever queue fails first, and not waited for by what it ends.
  function restart(): void {
    if (!isIn('ahead')) return
    state = 'failed'
    restarted = readAgain()
    restarted.catch(() => {})
  }

  async function readAgain(): Promise<void> {
    await (await consumer).stop()
    await Promise.all(writing)
    if (isIn('stopped')) return
    state = 'oneByOne'
    consumer = consume()
    await consumer
  }

  function tellMoved(): void {
    moved.resolve()
    moved = Promise.withResolvers()
  }

  function consume(): Promise<EventConsumer> {
    return consumeEvents({
      who,
      group: `tidegate.rebuild.${build.schema}`,
      topics: projection.topics,
      types: projection.types,
      log,
      codec: { ...codec, fromRecord: codec.fromRecordOnce },
      logger,
      skips,
      maxRecords,
      startOffset: (first) => openPartition(pool, build, first),
      apply,
    })
  }

  async function apply(batches: EventBatch[]): Promise<Position[]> {
    const limits = await liveOffsets()
    const some = batches.map((batch) => upTo(batch, limits.get(placeName(batch)) ?? 0))
    if (isIn('oneByOne') || some.every(({ events }) => events.length === 0)) return writeNow(some)
    for (const queue of queues) {
      const isOf = ({ partition }: EventBatch) => partition % queues.length === queue
      await writeBehind(queue, some.filter(isOf))
    }
    return some.map(({ topic, partition, end }) => ({ topic, partition, offset: end }))
  }

  async function writeNow(batches: EventBatch[]): Promise<Position[]> {
    await Promise.all(writing)
    refuseAfterFailure()
    return write(batches)
  }

  async function writeBehind(queue: number, batches: EventBatch[]): Promise<void> {
    await writing[queue]
    refuseAfterFailure()
    if (batches.length > 0) writing[queue] = writeAhead(batches)
  }

  function refuseAfterFailure(): void {
    if (isIn('failed')) throw new Error('what was read before could not be written')
  }

  async function writeAhead(batches: EventBatch[]): Promise<void> {
    try {
      const next = await write(batches)
      if (next.some(isBehind(batches))) restart()
    } catch (err) {
      logger.warn({ err, consumer: who }, `${who} failed; all records will be read again`)
      restart()
    }
  }

  async function write(batches: EventBatch[]): Promise<Position[]> {
    const outcome = await applyBatches({ pool, projection, build, batches }).finally(tellMoved)
    if (outcome.kind !== 'applied') throw new Error(`the build is ${outcome.kind}`)
    const events = batches.reduce((sum, batch) => sum + batch.events.length, 0)
    if (events > 0) options.onEvents(events)
    else await delay(overtakeDelayMs)
    return outcome.next
  }

  async function liveOffsets(): Promise<Map<string, number>> {
    return new Map((await buildOffsets(pool, live)).map((at) => [placeName(at), at.offset]))
  }

  async function isReached(positions: Position[]): Promise<boolean> {
    await restarted
    const status = (await consumer).status()
    await failOnStop(status, positions)
    const next = new Map(status.map((one) => [placeName(one), one.nextOffset]))
    if (!positions.every((position) => (next.get(placeName(position)) ?? 0) >= position.offset))
      return false
    await Promise.all(writing)
    return !isIn('failed')
  }

  // Behind the positions the live build may stand still at the same record. Where it went on because an operator left the
  // record out, it will be left out here, too, when it is tried again.
  async function failOnStop(status: PartitionStatus[], positions: Position[]): Promise<void> {
    const targets = new Map(positions.map((at) => [placeName(at), at.offset]))
    for (const { topic, partition, nextOffset: offset, stopped } of status) {
      const at = { topic, partition, offset }
      if (!stopped || offset >= (targets.get(placeName(at)) ?? 0) || (await skips.has(at))) continue
      throw new Error(
        `the new build cannot apply ${topic}/${partition} offset ${offset}: ${stopped}`,
      )
    }
  }

  return {
    async waitFor(positions) {
      while (!(await isReached(positions)))
        await Promise.race([moved.promise, delay(overtakeDelayMs)])
    },
    async stop() {
      state = 'stopped'
      await restarted.catch(() => {})
      await (await consumer).stop()
      await Promise.all(writing)
    },
  }
}

// Postgres has lost what it had written before.
const isBehind = (batches: EventBatch[]) => (next: Position) =>
  batches.some((batch) => placeName(batch) === placeName(next) && next.offset < batch.end)

function upTo(batch: EventBatch, limit: number): EventBatch {
  if (batch.end <= limit) return batch
  const events = batch.events.filter(({ position }) => position.offset < limit)
  return { ...batch, events, end: Math.max(limit, batch.expected) }
}
