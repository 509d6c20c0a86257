import { createHash, type Hash } from 'node:crypto'
import type { KafkaImport } from './kafka/import.ts'
import type { Batch, EventLog, LogRecord, Position, Topic } from './port.ts'
import { offsetIn, readTopicToEnd } from './read-topic.ts'

/**
 * A move of topics from the embedded log to Kafka. Copies records, then reads both sides and compares their digests.
 */
export interface Move {
  source: EventLog
  target: EventLog
  kafka: KafkaImport
  /** Returns the record to write to the target. */
  transform: (record: LogRecord) => LogRecord
  onRead: (records: number) => void
}

interface TopicMove {
  topic: Topic
  /** The offsets to start at in the source. Default: its first records. */
  from?: Position[]
  /** The target's end offsets before the move. */
  to: Position[]
  /** Records keep their offsets: required for topics that are kept forever, because read models store those offsets. */
  keepsOffsets: boolean
}

export interface MovedTopic {
  topic: Topic
  records: number
  /** The source's end offsets. */
  ends: Position[]
}

/** Returns the target's end offsets. Throws unless its records are a copy of the source's first records. */
export async function verifyMoved(
  { source, target, transform }: Move,
  topic: Topic,
): Promise<Position[]> {
  const ends = await target.endPositions(topic)
  if (ends.every(({ offset }) => offset === 0)) return ends
  const [actual, expected] = [createDigests(), createDigests()]
  await readTopicToEnd({ log: target, topic, handle: (batches) => actual.add(recordsIn(batches)) })
  const isMoved = ({ partition, offset }: Position) => offset < offsetIn(ends, partition)
  await readTopicToEnd({
    log: source,
    topic,
    handle: (batches) => expected.add(recordsIn(batches).filter(isMoved).map(transform)),
  })
  if (ends.some(({ partition }) => actual.digest(partition) !== expected.digest(partition)))
    throw foreignRecordsError(topic)
  return ends
}

export const foreignRecordsError = (topic: Topic) =>
  new Error(
    `${topic} on Kafka has records that are not from this embedded log. Choose another KAFKA_TOPIC_PREFIX, or delete ` +
      'the topics with this prefix.',
  )

/** Copies the missing records to the target. Throws if the target then differs from the source. */
export async function moveTopic(
  { source, target, kafka, transform, onRead }: Move,
  { topic, from = [], to, keepsOffsets }: TopicMove,
): Promise<MovedTopic> {
  const [copied, stored] = [createDigests({ keepsOffsets }), createDigests({ keepsOffsets })]
  const isMissing = ({ partition, offset }: Position) =>
    !keepsOffsets || offset >= offsetIn(to, partition)

  const ends = await readTopicToEnd({
    log: source,
    topic,
    from: (partition) => offsetIn(from, partition),
    async handle(batches) {
      const records = recordsIn(batches).map(transform)
      copied.add(records)
      await kafka.append(records.filter(isMissing))
      onRead(records.length)
    },
  })
  await readTopicToEnd({
    log: target,
    topic,
    from: (partition) => (keepsOffsets ? 0 : offsetIn(to, partition)),
    handle(batches) {
      stored.add(recordsIn(batches))
      onRead(recordsIn(batches).length)
    },
  })
  for (const { partition } of ends)
    if (copied.digest(partition) !== stored.digest(partition))
      throw new Error(
        `${topic}/${partition} differs: ${copied.count(partition)} records in the embedded log, ` +
          `${stored.count(partition)} on Kafka (docs/operate/kafka.md, From the embedded log to Kafka).`,
      )
  const records = ends.reduce((sum, { partition }) => sum + copied.count(partition), 0)
  return { topic, records, ends }
}

const recordsIn = (batches: Batch[]): LogRecord[] => batches.flatMap(({ records }) => records)

// Creates a counter and hash of each partition's records, which must be added in order.
function createDigests({ keepsOffsets = true } = {}) {
  const partitions = new Map<number, { count: number; hash: Hash }>()

  function add(record: LogRecord): void {
    const { partition, timestamp, key, headers, value } = record
    const content = partitions.get(partition) ?? { count: 0, hash: createHash('sha256') }
    partitions.set(partition, content)
    content.count += 1
    const offset = keepsOffsets ? record.offset : null
    const metadata = [offset, timestamp, key, Object.entries(headers).sort(), value.length]
    content.hash.update(JSON.stringify(metadata)).update(value)
  }

  return {
    add: (records: LogRecord[]): void => records.forEach(add),
    count: (partition: number): number => partitions.get(partition)?.count ?? 0,
    digest: (partition: number) => partitions.get(partition)?.hash.copy().digest('hex'),
  }
}
