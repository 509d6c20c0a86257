import type { LogRecord, Topic } from '../log/port.ts'
import type { EventCodec } from './codec.ts'
import type { RecordedEvent } from './event.ts'
import type { Skips } from './skips.ts'

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

/** The events of the batch that are to be applied behind the stored offset, and where the partition goes on. */
export function dueOf(
  batch: EventBatch,
  stored: number,
): { events: RecordedEvent[]; next: number } {
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

export interface Decoding {
  codec: EventCodec
  skips: Pick<Skips, 'has'>
  /** Types of the events that are wanted; others are passed over undecoded. Absent = all. */
  types?: ReadonlySet<string> | undefined
}

export interface DecodedRecords {
  events: RecordedEvent[]
  end: number
  /** The record at `end` cannot be read. */
  poison: { error: unknown } | undefined
}

/** The events before the first record that cannot be read and is not skipped. */
export async function decodeRecords(
  options: Decoding,
  records: LogRecord[],
): Promise<DecodedRecords> {
  const { codec, types } = options
  const end = (records.at(-1)?.offset ?? 0) + 1
  const read = types
    ? records.filter(({ headers }) => types.has(headers.event_type ?? ''))
    : records
  // Decoding what turns out to need a key costs as much as decoding it with the key.
  await codec.loadKeysOf(read)
  const decoded = await decodeWithKnownKeys(options, { read, end })
  return (await codec.findKeysOf(decoded.events))
    ? decodeWithKnownKeys(options, { read, end })
    : decoded
}

async function decodeWithKnownKeys(
  { codec, skips }: Decoding,
  { read, end }: { read: LogRecord[]; end: number },
): Promise<DecodedRecords> {
  const events: RecordedEvent[] = []
  for (const record of read) {
    try {
      events.push(codec.fromRecord(record))
    } catch (error) {
      if (!(await skips.has(record))) return { events, end: record.offset, poison: { error } }
    }
  }
  return { events, end, poison: undefined }
}
