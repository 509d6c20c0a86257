import { randomBytes } from 'node:crypto'
import {
  type Batch,
  type EventLog,
  type LogRecord,
  type Position,
  partitionName,
  type Topic,
  type TopicPartition,
} from './port.ts'

export interface ReadingOptions {
  log: EventLog
  topic: Topic
  /** Returns the offset to start a partition at. Default: its first record. */
  from?: (partition: number) => number
  /** Returns true for partitions to read. Default: all. */
  isIncluded?: (at: TopicPartition) => boolean
  /** Gets each record once, in partition order. An error ends the reading. */
  handle: (batches: Batch[]) => Promise<void> | void
  /** The caller stops at the end, so an empty range starts no consumer. Default: false. */
  stopsAtEnd?: boolean
}

export interface TopicReader {
  /** Resolves with the end positions at the call once all records before them are handled. */
  atEnd: Promise<Position[]>
  stop(): Promise<void>
}

/** Reads a topic in a consumer group of its own, and continues with new records until stopped. */
export async function readTopic(options: ReadingOptions): Promise<TopicReader> {
  const { log, topic, from = () => 0, isIncluded = () => true, handle } = options
  const [firsts, ends] = await Promise.all([log.firstPositions(topic), log.endPositions(topic)])
  const includedEnds = ends.filter(isIncluded)
  const startOf = (partition: number) => Math.max(from(partition), offsetIn(firsts, partition))
  const nonEmpty = includedEnds.filter(({ partition, offset }) => offset > startOf(partition))
  const nextOffsets = new Map<string, number>()
  const isAtEnd = () =>
    nonEmpty.every((end) => (nextOffsets.get(partitionName(end)) ?? 0) >= end.offset)
  const { promise: atEnd, resolve, reject } = Promise.withResolvers<Position[]>()
  atEnd.catch(() => {})
  if (isAtEnd()) resolve(includedEnds)
  if (isAtEnd() && options.stopsAtEnd) return { atEnd, stop: async () => {} }

  let failed = false
  let consumerErrors = 0

  // Drops records that were handled before: a consumer that reconnects, or gets its partitions again, starts over.
  function dropHandled(batches: Batch[]): Batch[] {
    return batches
      .filter(isIncluded)
      .map((batch) => {
        const next = nextOffsets.get(partitionName(batch)) ?? 0
        return { ...batch, records: batch.records.filter(({ offset }) => offset >= next) }
      })
      .filter(({ records }) => records.length > 0)
  }

  async function handleNew(batches: Batch[]): Promise<undefined> {
    if (failed) return
    consumerErrors = 0
    const newBatches = dropHandled(batches)
    try {
      if (newBatches.length > 0) await handle(newBatches)
    } catch (error) {
      failed = true
      reject(error)
      throw error
    }
    for (const batch of newBatches)
      nextOffsets.set(partitionName(batch), (batch.records.at(-1)?.offset ?? 0) + 1)
    if (isAtEnd()) resolve(includedEnds)
  }

  const consumer = await log.consume({
    group: `tidegate.reading.${randomBytes(6).toString('hex')}`,
    topics: [topic],
    commitsOffsets: false,
    startOffset: async (_topic, partition) =>
      isIncluded({ topic, partition }) ? startOf(partition) : offsetIn(ends, partition),
    // The consumer retries by itself: the first group of a new Kafka cluster waits for its coordinator.
    onError(error) {
      consumerErrors += 1
      if (consumerErrors > maxConsumerErrors) reject(error)
    },
    handle: handleNew,
  })
  return { atEnd, stop: () => consumer.stop() }
}

// Consecutive errors, which take about half a minute with backoff.
const maxConsumerErrors = 10

/** Reads the topic up to its end at the call, and returns the end. */
export async function readTopicToEnd(options: ReadingOptions): Promise<Position[]> {
  const reader = await readTopic({ ...options, stopsAtEnd: true })
  return reader.atEnd.finally(() => reader.stop())
}

/** Returns the records at the positions, of which each partition may have one. Omits records that don't exist. */
export async function readRecords(
  log: EventLog,
  topic: Topic,
  at: Position[],
): Promise<LogRecord[]> {
  const ends = at.length > 0 ? await log.endPositions(topic) : []
  const existing = at.filter(({ partition, offset }) => offset < offsetIn(ends, partition))
  if (existing.length === 0) return []
  const partitions = new Set(existing.map(({ partition }) => partition))
  const offsets = new Map(existing.map(({ partition, offset }) => [partition, offset]))
  const results: LogRecord[] = []
  const { promise: allRead, resolve } = Promise.withResolvers<void>()
  const reader = await readTopic({
    log,
    topic,
    from: (partition) => offsets.get(partition) ?? 0,
    isIncluded: ({ partition }) => partitions.has(partition),
    handle(batches) {
      for (const { partition, records } of batches) {
        results.push(...records.filter(({ offset }) => offset === offsets.get(partition)))
        offsets.delete(partition)
      }
      if (offsets.size === 0) resolve()
    },
  })
  await Promise.race([allRead, reader.atEnd]).finally(() => reader.stop())
  return results
}

/** Returns the partition's offset among the positions of a topic; 0 if it has none. */
export function offsetIn(positions: Position[], partition: number): number {
  return positions.find((position) => position.partition === partition)?.offset ?? 0
}
