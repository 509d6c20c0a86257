import { randomBytes } from 'node:crypto'
import {
  type Batch,
  type EventLog,
  type LogRecord,
  type Place,
  type Position,
  placeName,
  type Topic,
} from './port.ts'

export interface ReadingOptions {
  log: EventLog
  topic: Topic
  /** The offset that a partition is read from. Default: its first record. */
  from?: (partition: number) => number
  /** Only these partitions are read. Default: all. */
  isRead?: (place: Place) => boolean
  /** Gets each record once, in the order of its partition. What it throws ends the reading. */
  handle: (batches: Batch[]) => Promise<void> | void
  /** Nobody waits for new records: where there are none, no consumer is started. Default: false. */
  endsThere?: boolean
}

export interface TopicReader {
  /** Resolves when everything is handled that there was at the call, with where that ends. */
  atEnd: Promise<Position[]>
  stop(): Promise<void>
}

/** Reads a topic for itself, in no group with others, and goes on with new records until it is stopped. */
export async function readTopic(options: ReadingOptions): Promise<TopicReader> {
  const { log, topic, from = () => 0, isRead = () => true, handle } = options
  const [firsts, ends] = await Promise.all([log.firstPositions(topic), log.endPositions(topic)])
  const toRead = ends.filter(isRead)
  const startOf = (partition: number) => Math.max(from(partition), offsetIn(firsts, partition))
  const left = toRead.filter(({ partition, offset }) => offset > startOf(partition))
  const handled = new Map<string, number>()
  const isAtEnd = () => left.every((end) => (handled.get(placeName(end)) ?? 0) >= end.offset)
  const { promise: atEnd, resolve, reject } = Promise.withResolvers<Position[]>()
  atEnd.catch(() => {})
  if (isAtEnd()) resolve(toRead)
  if (isAtEnd() && options.endsThere) return { atEnd, stop: async () => {} }

  let failed = false
  let troubles = 0

  // A consumer that lost its connection, or its partitions, begins where the reading began.
  function fresh(batches: Batch[]): Batch[] {
    const ofInterest = batches.filter(isRead).map((batch) => {
      const next = handled.get(placeName(batch)) ?? 0
      return { ...batch, records: batch.records.filter(({ offset }) => offset >= next) }
    })
    return ofInterest.filter(({ records }) => records.length > 0)
  }

  async function take(batches: Batch[]): Promise<undefined> {
    if (failed) return
    troubles = 0
    const todo = fresh(batches)
    try {
      if (todo.length > 0) await handle(todo)
    } catch (error) {
      failed = true
      reject(error)
      throw error
    }
    for (const batch of todo) handled.set(placeName(batch), (batch.records.at(-1)?.offset ?? 0) + 1)
    if (isAtEnd()) resolve(toRead)
  }

  const consumer = await log.consume({
    group: `tidegate.reading.${randomBytes(6).toString('hex')}`,
    topics: [topic],
    keepsNoOffsets: true,
    startOffset: async (_topic, partition) =>
      isRead({ topic, partition }) ? startOf(partition) : offsetIn(ends, partition),
    // The consumer tries again: the first group of a new Kafka waits for its coordinator.
    onError(error) {
      troubles += 1
      if (troubles > maxTroubles) reject(error)
    },
    handle: take,
  })
  return { atEnd, stop: () => consumer.stop() }
}

// In a row: half a minute.
const maxTroubles = 10

/** Reads what there is at the call, and returns where that ends. */
export async function readTopicToEnd(options: ReadingOptions): Promise<Position[]> {
  const reading = await readTopic({ ...options, endsThere: true })
  return reading.atEnd.finally(() => reading.stop())
}

/** The records at the positions, of which each partition has one at most. */
export async function readRecords(
  log: EventLog,
  topic: Topic,
  at: Position[],
): Promise<LogRecord[]> {
  const ends = at.length > 0 ? await log.endPositions(topic) : []
  const there = at.filter(({ partition, offset }) => offset < offsetIn(ends, partition))
  if (there.length === 0) return []
  const read = new Set(there.map(({ partition }) => partition))
  const offsets = new Map(there.map(({ partition, offset }) => [partition, offset]))
  const found: LogRecord[] = []
  const { promise: allSeen, resolve } = Promise.withResolvers<void>()
  const reading = await readTopic({
    log,
    topic,
    from: (partition) => offsets.get(partition) ?? 0,
    isRead: ({ partition }) => read.has(partition),
    handle(batches) {
      for (const { partition, records } of batches) {
        found.push(...records.filter(({ offset }) => offset === offsets.get(partition)))
        offsets.delete(partition)
      }
      if (offsets.size === 0) resolve()
    },
  })
  await Promise.race([allSeen, reading.atEnd]).finally(() => reading.stop())
  return found
}

export function offsetIn(positions: Position[], partition: number): number {
  return positions.find((position) => position.partition === partition)?.offset ?? 0
}
