import type { LogRecord, Topic } from '../log/port.ts'
import type { EventCodec } from './codec.ts'
import type { RecordedEvent } from './event.ts'
import type { Skips } from './skips.ts'

/** Events of one partition, applied as a whole. */
export interface EventBatch {
  topic: Topic
  partition: number
  events: RecordedEvent[]
  /** The offset after the last record. */
  end: number
  /** The next offset that this process expects to be stored. A smaller stored one means that Postgres lost commits. */
  expected: number
  /** Returns the time of the last record before an offset, epoch milliseconds; 0 if the batch has none. */
  timeBefore: (offset: number) => number
}

/** Returns the batch's events from the stored offset on, and the partition's next offset after them. */
export function eventsToApply(
  batch: EventBatch,
  stored: number,
): { events: RecordedEvent[]; next: number } {
  // Postgres lost commits that this process has seen: read again from the stored offset.
  if (stored < batch.expected) return { events: [], next: stored }
  const events = batch.events.filter((event) => event.position.offset >= stored)
  return { events, next: Math.max(stored, batch.end) }
}

/** Thrown if an event can't be processed and a retry won't help. `cause` is the error. */
export class EventFailed extends Error {
  constructor(cause: unknown) {
    // Without the cause's message, which may quote a value. The logger filters such values from `cause`.
    super('an event cannot be dealt with', { cause })
    this.name = 'EventFailed'
  }
}

export interface DecodeOptions {
  codec: EventCodec
  skips: Pick<Skips, 'has'>
  /** Event types to decode; records of other types are dropped. Absent = all. */
  types?: ReadonlySet<string> | undefined
}

export interface DecodedRecords {
  events: RecordedEvent[]
  end: number
  /** The error of the record at `end` if it can't be decoded (a poison record). undefined if all could. */
  poison: { error: unknown } | undefined
}

/** Decodes the records up to the first one that can't be decoded and isn't skipped. */
export async function decodeRecords(
  options: DecodeOptions,
  records: LogRecord[],
): Promise<DecodedRecords> {
  const { codec, types } = options
  const end = (records.at(-1)?.offset ?? 0) + 1
  const selected = types
    ? records.filter(({ headers }) => types.has(headers.event_type ?? ''))
    : records
  // Load the keys first, because decoding without the key costs as much as with it.
  await codec.loadKeysOf(selected)
  const decoded = await decodeWithLoadedKeys(options, { records: selected, end })
  return (await codec.loadMissingKeysOf(decoded.events))
    ? decodeWithLoadedKeys(options, { records: selected, end })
    : decoded
}

async function decodeWithLoadedKeys(
  { codec, skips }: DecodeOptions,
  { records, end }: { records: LogRecord[]; end: number },
): Promise<DecodedRecords> {
  const events: RecordedEvent[] = []
  for (const record of records) {
    try {
      events.push(codec.fromRecord(record))
    } catch (error) {
      if (!(await skips.has(record))) return { events, end: record.offset, poison: { error } }
    }
  }
  return { events, end, poison: undefined }
}
