import type { EventLog, LogRecord, ReceivingLog, Topic } from '../port.ts'
import { readRecords } from '../read-topic.ts'

export interface CopyPlace {
  source: EventLog
  target: ReceivingLog
  topic: Topic
  /**
   * Whether its records are deleted after a time. The first ones are gone then, so the others get other offsets on the
   * target, and a header says which they had. Records that stay for ever have the same offsets on both.
   */
  expires: boolean
}

const sourceOffset = 'source_offset'

export function marked(record: LogRecord): LogRecord {
  return { ...record, headers: { ...record.headers, [sourceOffset]: String(record.offset) } }
}

/** A record of the copy, as the source has it. */
export function original(record: LogRecord): LogRecord {
  const { [sourceOffset]: offset, ...headers } = record.headers
  return offset === undefined ? record : { ...record, headers, offset: Number(offset) }
}

/** Throws where the target has anything but the beginning of the source, before anything is written. */
export async function refuseOtherRecords(place: CopyPlace): Promise<void> {
  const { source, target, topic, expires } = place
  const [sourceEnds, ends, firsts] = await Promise.all([
    source.endPositions(topic),
    target.endPositions(topic),
    target.firstPositions(topic),
  ])
  if (ends.length !== sourceEnds.length)
    throw new Error(
      `${topic} has ${ends.length} partitions on Kafka and ${sourceEnds.length} in the embedded log. ${elsewhere}`,
    )
  const lasts = ends
    .filter(({ offset }, partition) => offset > (firsts[partition]?.offset ?? 0))
    .map((end) => ({ ...end, offset: end.offset - 1 }))
  const found = await readRecords(target, topic, lasts)
  if (found.some(({ headers }) => sourceOffset in headers !== expires)) throw foreign(topic)
  const copied = found.map(original)
  const carried = await readRecords(source, topic, copied)
  for (const record of copied) {
    const isGone = expires && record.offset < (sourceEnds[record.partition]?.offset ?? 0)
    const there = carried.find(({ partition }) => partition === record.partition)
    if (there ? identityOf(there) !== identityOf(record) : !isGone) throw foreign(topic)
  }
}

const elsewhere = 'Choose another KAFKA_TOPIC_PREFIX, or delete the topics that have this one.'

const foreign = (topic: Topic) =>
  new Error(`${topic} on Kafka has records that are not of this embedded log. ${elsewhere}`)

// Headers have the id of the event, so that these name a record.
const identityOf = ({ key, timestamp, headers }: LogRecord) =>
  JSON.stringify([key, timestamp, Object.entries(headers).sort()])
