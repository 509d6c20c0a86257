import { randomBytes } from 'node:crypto'
import { type Batch, type EventLog, type Place, type Position, placeName, type Topic } from './port.ts'

interface ReadingOptions {
  log: EventLog
  topic: Topic
  /** The offset that a partition is read from. Default: its first record. */
  from?: (partition: number) => number
  /** Only these partitions are read. Default: all. */
  isRead?: (place: Place) => boolean
  /** Gets records in the order of their partition. What it throws ends the reading. */
  handle: (batches: Batch[]) => Promise<void> | void
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
  const wanted = ends.filter(isRead)
  const startOf = (partition: number) => Math.max(from(partition), offsetIn(firsts, partition))
  const left = wanted.filter(({ partition, offset }) => offset > startOf(partition))
  const unread = new Map(left.map((end) => [placeName(end), end.offset]))
  const { promise: atEnd, resolve, reject } = Promise.withResolvers<Position[]>()
  atEnd.catch(() => {})
  if (unread.size === 0) resolve(wanted)

  async function take(batches: Batch[]): Promise<undefined> {
    await handle(batches.filter(isRead))
    for (const { records, ...place } of batches) {
      const next = (records.at(-1)?.offset ?? 0) + 1
      if (next >= (unread.get(placeName(place)) ?? 0)) unread.delete(placeName(place))
    }
    if (unread.size === 0) resolve(wanted)
  }

  const consumer = await log.consume({
    group: `tidegate.reading.${randomBytes(6).toString('hex')}`,
    topics: [topic],
    startOffset: async (_topic, partition) =>
      isRead({ topic, partition }) ? startOf(partition) : offsetIn(ends, partition),
    onError: reject,
    handle: take,
  })
  return { atEnd, stop: () => consumer.stop() }
}

/** Reads what there is at the call, and returns where that ends. */
export async function readTopicToEnd(options: ReadingOptions): Promise<Position[]> {
  const reading = await readTopic(options)
  return reading.atEnd.finally(() => reading.stop())
}

function offsetIn(positions: Position[], partition: number): number {
  return positions.find((position) => position.partition === partition)?.offset ?? 0
}
