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
  /** Set if the caller stops at the end. An empty range then starts no consumer. Default: false. */
  stopsAtEnd?: boolean
}

export interface TopicReader {
  /** Resolves once all records up to the topic's end at the call are handled, with those end positions. */
  reachedEnd: Promise<Position[]>
  stop(): Promise<void>
}

/** Reads a topic in a consumer group of its own, and continues with new records until stopped. */
export async function readTopic(options: ReadingOptions): Promise<TopicReader> {
  const { log, topic, from = () => 0, isIncluded = () => true, handle } = options
  const [starts, ends] = await Promise.all([log.firstPositions(topic), log.endPositions(topic)])
  const includedEnds = ends.filter(isIncluded)
  const startOf = (partition: number) => Math.max(from(partition), offsetIn(starts, partition))
  const nonEmpty = includedEnds.filter(({ partition, offset }) => offset > startOf(partition))
  const nextOffsets = new Map<string, number>()
  const isAtEnd = () =>
    nonEmpty.every((end) => (nextOffsets.get(partitionName(end)) ?? 0) >= end.offset)
  const { promise: reachedEnd, resolve, reject } = Promise.withResolvers<Position[]>()
  reachedEnd.catch(() => {})
  if (isAtEnd()) resolve(includedEnds)
  if (isAtEnd() && options.stopsAtEnd) return { reachedEnd, stop: async () => {} }

  let failed = false
  let consumerErrors = 0

  // A consumer that reconnects, or gets its partitions again, starts over, so drop records that were handled before.
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
    // The consumer retries. Errors are expected on a new Kafka cluster, whose first group waits for a coordinator.
    onError(error) {
      consumerErrors += 1
      if (consumerErrors > maxConsumerErrors) reject(error)
    },
    handle: handleNew,
  })
  return { reachedEnd, stop: () => consumer.stop() }
}

// Consecutive errors. With backoff, so many take about half a minute.
const maxConsumerErrors = 10

/** Reads the topic up to its end at the call, and returns the end. */
export async function readTopicToEnd(options: ReadingOptions): Promise<Position[]> {
  const reader = await readTopic({ ...options, stopsAtEnd: true })
  return reader.reachedEnd.finally(() => reader.stop())
}

/** Returns the records at the positions, at most one per partition. Omits records that don't exist. */
export async function readRecords(
  log: EventLog,
  topic: Topic,
  positions: Position[],
): Promise<LogRecord[]> {
  const ends = positions.length > 0 ? await log.endPositions(topic) : []
  const existing = positions.filter(({ partition, offset }) => offset < offsetIn(ends, partition))
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
  await Promise.race([allRead, reader.reachedEnd]).finally(() => reader.stop())
  return results
}

/** Returns the partition's offset among the positions of a topic; 0 if it has none. */
export function offsetIn(positions: Position[], partition: number): number {
  return positions.find((position) => position.partition === partition)?.offset ?? 0
}
