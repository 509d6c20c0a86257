import { setTimeout as delay } from 'node:timers/promises'
import {
  type Batch,
  type EventLog,
  type LogConsumer,
  type LogRecord,
  type Place,
  type Position,
  placeName,
  type ReadOn,
  type Topic,
} from '../log/port.ts'
import type { Logger } from '../telemetry.ts'
import type { EventCodec, RecordedEvent } from './codec.ts'
import type { Skips } from './skips.ts'

export interface PartitionStatus {
  topic: string
  partition: number
  nextOffset: number
  /** Why the partition stands still at `nextOffset`: an event, or ten seconds of failures; null while it goes on. */
  halted: string | null
}

/** What came of one partition, to be applied as a whole. */
export interface EventBatch {
  topic: Topic
  partition: number
  events: RecordedEvent[]
  end: number
  /** The next offset that this process believes to be stored. A smaller one means lost commits. */
  expected: number
  /** When the log stored the last of the records before an offset, epoch milliseconds. */
  timeBefore: (offset: number) => number
}

/** What of the batch is to be applied, given the stored offset, and where the partition goes on afterwards. */
export function dueOf(batch: EventBatch, stored: number): { events: RecordedEvent[]; next: number } {
  // Postgres lost commits that this process has seen: they are read again from where it stands.
  if (stored < batch.expected) return { events: [], next: stored }
  const events = batch.events.filter((event) => event.position.offset >= stored)
  return { events, next: Math.max(stored, batch.end) }
}

/** An event that cannot be dealt with: trying again will not help. Its cause is what went wrong. */
export class EventFailed extends Error {
  constructor(cause: unknown) {
    // Not the cause's message: it may quote a value, and only the logger knows which to leave out.
    super('an event cannot be dealt with', { cause })
    this.name = 'EventFailed'
  }
}

export interface EventConsumerOptions {
  /** Who consumes, for log lines: `projection sessions`. */
  who: string
  group: string
  topics: Topic[]
  /** Types of the events that it wants; others are passed over undecoded. Absent = all. */
  types?: ReadonlySet<string> | undefined
  log: EventLog
  codec: EventCodec
  logger: Logger
  skips: Pick<Skips, 'has'>
  maxRecords?: number
  /** Milliseconds from any beginning. Default: that of the process. */
  clock?: () => number
  /** Milliseconds to wait after a batch, so that the next is larger: for what nobody waits for. Absent = none. */
  gatherMs?: number | undefined
  startOffset?: (topic: Topic, partition: number) => Promise<number>
  /**
   * Applies all of the batches or none, and returns where each partition goes on: behind its end, or where the stored
   * offset says. Throws EventFailed when an event is at fault; any other error is tried again.
   */
  apply: (batches: EventBatch[]) => Promise<Position[]>
}

export interface EventConsumer {
  status(): PartitionStatus[]
  /** Tells that another process got past an offset: what halted this one is no halt any more. */
  passed(next: Position): void
  stop(): Promise<void>
}

/**
 * Consumes events in one lane: what has come to all partitions is applied together. A partition with an event that
 * cannot be dealt with halts there, and the others go on. It is tried again, and never skipped.
 */
export async function consumeEvents(options: EventConsumerOptions): Promise<EventConsumer> {
  const { who, logger, apply, gatherMs, clock = () => performance.now() } = options
  const stopping = new AbortController()
  const known = new Map<string, Progress>()

  function statusOf({ topic, partition }: Place): Progress {
    const name = placeName({ topic, partition })
    const status = known.get(name) ?? { topic, partition, nextOffset: 0, halted: null, failing: null }
    known.set(name, status)
    return status
  }

  const onError = (err: unknown, position?: Position) =>
    logger.warn({ err, consumer: who, position }, `${who} failed; the records will be read again`)

  async function decode({ topic, partition, records }: Batch): Promise<Decoded> {
    const expected = statusOf({ topic, partition }).nextOffset
    const timeBefore = (offset: number) =>
      records.findLast((record) => record.offset < offset)?.timestamp ?? 0
    const start = records[0]?.offset ?? 0
    return { topic, partition, start, ...(await decodeRecords(options, records)), expected, timeBefore }
  }

  function halt(at: Position, error: unknown): ReadOn {
    const status = statusOf(at)
    const stands = new Error(`${who} stands still at ${at.topic}/${at.partition} offset ${at.offset}`, {
      cause: error,
    })
    // It is tried again and again; one line says so.
    if (!status.halted) logger.error({ err: stands, consumer: who, ...at }, stands.message)
    status.nextOffset = at.offset
    status.halted = String(error)
    return { ...at, failed: true }
  }

  // Where the partition is read on, if not behind its batch.
  function goOn(batch: Decoded, next: Position | undefined): ReadOn[] {
    const { topic, partition, end, poison } = batch
    const offset = next?.offset ?? end
    const status = statusOf(batch)
    status.nextOffset = offset
    if (poison && offset === end) return [halt({ topic, partition, offset }, poison.error)]
    status.halted = null
    status.failing = null
    return offset === end ? [] : [{ topic, partition, offset }]
  }

  async function applyAll(batches: Decoded[]): Promise<ReadOn[]> {
    const applied = await apply(batches)
    return batches.flatMap((batch) =>
      goOn(
        batch,
        applied.find((next) => isOf(next, batch)),
      ),
    )
  }

  // Event by event, so that what precedes the failing one is applied and its position is known.
  async function applySingly(batch: Decoded): Promise<ReadOn[]> {
    for (const event of batch.events) {
      const { offset } = event.position
      const expected = statusOf(batch).nextOffset
      try {
        await applyAll([{ ...batch, events: [event], end: offset + 1, expected, poison: undefined }])
      } catch (error) {
        if (error instanceof EventFailed) return [halt(event.position, error.cause)]
        throw error
      }
    }
    return applyAll([{ ...batch, events: [], expected: statusOf(batch).nextOffset }])
  }

  // In one lane, but for the partitions that failed last: those go apart, so that they hold up no other.
  async function handle(batches: Batch[]): Promise<ReadOn[]> {
    const { decoded, readOn } = await decodeAll(batches)
    const isApart = (batch: Decoded) => statusOf(batch).halted !== null || statusOf(batch).failing !== null
    const failuresOf = (batch: Decoded) => statusOf(batch).failing?.count ?? 0
    const lane = decoded.filter((batch) => !isApart(batch))
    const apart = decoded.filter(isApart).sort((a, b) => failuresOf(a) - failuresOf(b))
    try {
      if (lane.length > 0) readOn.push(...(await applyAll(lane)))
    } catch (error) {
      if (!(error instanceof EventFailed)) return [...readOn, ...fail(lane, error), ...leave(apart)]
      // One of them is at fault: each by itself finds out which.
      apart.unshift(...lane)
    }
    readOn.push(...(await applyEach(apart)))
    if (gatherMs) await delay(gatherMs, undefined, { signal: stopping.signal }).catch(() => {})
    return readOn
  }

  // A partition whose records cannot be decoded for now, as when nobody answers whether one is skipped, fails alone.
  async function decodeAll(batches: Batch[]): Promise<{ decoded: Decoded[]; readOn: ReadOn[] }> {
    const decoded: Decoded[] = []
    const failed: { batch: Start; error: unknown }[] = []
    const decodeOne = async (batch: Batch) => {
      const { topic, partition, records } = batch
      const start = { topic, partition, start: records[0]?.offset ?? 0 }
      await decode(batch).then(
        (one) => decoded.push(one),
        (error) => failed.push({ batch: start, error }),
      )
    }
    await Promise.all(batches.map(decodeOne))
    const readOn = failed.flatMap(({ batch, error }) => fail([batch], error))
    return { decoded, readOn }
  }

  async function applyEach(batches: Decoded[]): Promise<ReadOn[]> {
    const readOn: ReadOn[] = []
    for (const [i, batch] of batches.entries()) {
      try {
        readOn.push(...(await applyApart(batch)))
      } catch (error) {
        // The log or the database may be away, and the others would only wait as long, one after the other.
        return [...readOn, ...fail([batch], error), ...leave(batches.slice(i + 1))]
      }
    }
    return readOn
  }

  function fail(batches: Start[], error: unknown): ReadOn[] {
    const positions = leave(batches)
    for (const position of positions) {
      const status = statusOf(position)
      status.failing = failedAgain(status.failing, { now: clock(), error })
    }
    onError(error, positions[0])
    return positions
  }

  // They come again from where they are.
  function leave(batches: Start[]): ReadOn[] {
    return batches.map(({ topic, partition, start: offset }) => ({ topic, partition, offset, failed: true }))
  }

  async function applyApart(batch: Decoded): Promise<ReadOn[]> {
    try {
      return await applyAll([batch])
    } catch (error) {
      if (!(error instanceof EventFailed)) throw error
      return applySingly(batch)
    }
  }

  async function startOffset(topic: Topic, partition: number): Promise<number | undefined> {
    const status = statusOf({ topic, partition })
    try {
      const next = await options.startOffset?.(topic, partition)
      if (next !== undefined) status.nextOffset = next
      status.halted = null
      return next
    } catch (error) {
      // As with tables of another version: nothing is applied, and readiness is where that must show.
      status.halted = `not started: ${error instanceof Error ? error.message : error}`
      throw error
    }
  }

  const { log, group, topics, types, maxRecords } = options
  const limits = maxRecords === undefined ? {} : { maxRecords }
  const consumer: LogConsumer = await log.consume({
    group,
    topics,
    types,
    ...limits,
    startOffset,
    handle,
    onError,
  })
  return {
    status: () =>
      [...known.values()].map(({ failing, ...status }) => ({
        ...status,
        halted: status.halted ?? standing(failing, clock()),
      })),
    passed(next) {
      const status = statusOf(next)
      if (next.offset <= status.nextOffset) return
      status.halted = null
      status.failing = null
    },
    stop() {
      stopping.abort()
      return consumer.stop()
    },
  }
}

interface Progress extends PartitionStatus {
  failing: Failing | null
}

// Failures in a row, other than of an event. Times are milliseconds of the clock.
interface Failing {
  since: number
  last: number
  count: number
  error: unknown
}

const standingAfterMs = 10_000
// Longer than the back-off and the time limits of an attempt: the partition was given to another process since.
const givenAwayAfterMs = 60_000

const isOver = ({ last }: Failing, now: number) => now - last > givenAwayAfterMs

function failedAgain(failing: Failing | null, { now, error }: { now: number; error: unknown }): Failing {
  const { since, count } = failing && !isOver(failing, now) ? failing : { since: now, count: 0 }
  return { since, last: now, count: count + 1, error }
}

// Why a partition that is tried again and again stands still; null while it may go on.
function standing(failing: Failing | null, now: number): string | null {
  if (!failing || failing.last - failing.since < standingAfterMs || isOver(failing, now)) return null
  return `failed ${failing.count} times in a row: ${failing.error}`
}

interface Start extends Place {
  start: number
}

interface Decoded extends EventBatch, Start {
  // The record at `end`, which cannot be read.
  poison: { error: unknown } | undefined
}

const isOf = (next: Position, { topic, partition }: EventBatch): boolean =>
  next.topic === topic && next.partition === partition

/** The events before the first record that cannot be read and is not skipped. */
export async function decodeRecords(
  options: Pick<EventConsumerOptions, 'codec' | 'skips' | 'types'>,
  records: LogRecord[],
): Promise<Pick<Decoded, 'events' | 'end' | 'poison'>> {
  const decoded = await decodeWithKnownKeys(options, records)
  return (await options.codec.findKeysOf(decoded.events)) ? decodeWithKnownKeys(options, records) : decoded
}

async function decodeWithKnownKeys(
  { codec, skips, types }: Pick<EventConsumerOptions, 'codec' | 'skips' | 'types'>,
  records: LogRecord[],
): Promise<Pick<Decoded, 'events' | 'end' | 'poison'>> {
  const events: RecordedEvent[] = []
  for (const record of records) {
    if (types && !types.has(record.headers.event_type ?? '')) continue
    try {
      events.push(codec.fromRecord(record))
    } catch (error) {
      if (!(await skips.has(record))) return { events, end: record.offset, poison: { error } }
    }
  }
  return { events, end: (records.at(-1)?.offset ?? 0) + 1, poison: undefined }
}
