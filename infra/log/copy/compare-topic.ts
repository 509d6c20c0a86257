import { createHash, type Hash } from 'node:crypto'
import type { Batch, EventLog, LogRecord, Position, Topic } from '../port.ts'
import { readRecords, readTopicToEnd } from '../read-topic.ts'
import { type CopyPlace, original } from './copied.ts'

interface CompareOptions extends CopyPlace {
  /** Ends of the source when it was copied. */
  ends: Position[]
  change?: ((record: LogRecord) => LogRecord) | undefined
}

/**
 * Reads both logs, and throws where they differ in a record, its key, headers or time, or in the order. Returns how many
 * records were compared.
 */
export async function compareTopic(options: CompareOptions): Promise<number> {
  const { source, target, topic, change = (record) => record } = options
  const ranges = await commonRanges(options)
  const ofSource = await contentOf({ log: source, topic, ranges, view: change })
  const ofTarget = await contentOf({ log: target, topic, ranges, view: original })
  for (const [partition, { records, digest }] of ofSource) {
    const copy = ofTarget.get(partition)
    if (copy?.digest !== digest)
      throw new Error(
        `${topic}/${partition} differs: ${records} records in the embedded log, ${copy?.records} on Kafka. ` +
          'The database still belongs to the embedded log. Delete the topics on Kafka, and copy again.',
      )
  }
  return [...ofTarget.values()].reduce((sum, { records }) => sum + records, 0)
}

// Offsets of the source; `to` is behind the last.
interface Range {
  from: number
  to: number
}

async function commonRanges(options: CompareOptions): Promise<Map<number, Range>> {
  const starts = options.expires ? await commonStarts(options) : new Map<number, number>()
  return new Map(
    options.ends.map(({ partition, offset: to }) => [
      partition,
      { from: starts.get(partition) ?? 0, to },
    ]),
  )
}

// Either log may have deleted expired records that the other has.
async function commonStarts({
  source,
  target,
  topic,
  ends,
}: CompareOptions): Promise<Map<number, number>> {
  const firsts = await source.firstPositions(topic)
  const expired = (await target.firstPositions(topic)).filter(({ offset }) => offset > 0)
  const heads = (await readRecords(target, topic, expired)).map(original)
  const startOf = (partition: number): number => {
    const isOf = (position: Position) => position.partition === partition
    return expired.some(isOf) ? ((heads.find(isOf) ?? ends.find(isOf))?.offset ?? 0) : 0
  }
  return new Map(
    firsts.map(({ partition, offset }) => [partition, Math.max(offset, startOf(partition))]),
  )
}

interface ContentOptions {
  log: EventLog
  topic: Topic
  ranges: Map<number, Range>
  view: (record: LogRecord) => LogRecord
}

// How many records each partition has in its range, and the digest of all of them in order.
async function contentOf({ log, topic, ranges, view }: ContentOptions) {
  const hashes = new Map(
    [...ranges.keys()].map((partition) => [partition, { records: 0, hash: sha256() }]),
  )
  function add(record: LogRecord): void {
    const range = ranges.get(record.partition)
    const content = hashes.get(record.partition)
    if (!range || !content || record.offset < range.from || record.offset >= range.to) return
    content.records += 1
    update(content.hash, record)
  }
  const handle = (batches: Batch[]) => {
    for (const { records } of batches) for (const record of records) add(view(record))
  }
  await readTopicToEnd({ log, topic, handle })
  const contents = [...hashes].map(
    ([partition, { records, hash }]) =>
      [partition, { records, digest: hash.digest('hex') }] as const,
  )
  return new Map(contents)
}

const sha256 = () => createHash('sha256')

function update(hash: Hash, { offset, timestamp, key, headers, value }: LogRecord): void {
  const described = [offset, timestamp, key, Object.entries(headers).sort(), value.length]
  hash.update(JSON.stringify(described)).update(value)
}
