import type { Batch, LogRecord, Position } from '../log/port.ts'
import type { EventCodec, RecordedEvent } from './codec.ts'

/** An event that cannot be applied. Its partition stands still at it until a person has dealt with it. */
export interface Poison {
  position: Position
  error: unknown
}

export interface DecodedBatch {
  events: RecordedEvent[]
  /** The partition and the next offset after `events`. */
  end: Position
  /** What stopped the decoding; undefined when all of it decoded. */
  poison: Poison | undefined
}

/** Decodes records up to the first that cannot be. */
export function decodeBatch(codec: EventCodec, { topic, partition, records }: Batch): DecodedBatch {
  const events: RecordedEvent[] = []
  let offset = records[0]?.offset ?? 0
  for (const record of records) {
    const decoded = decode(codec, record)
    if ('error' in decoded) {
      const position = { topic, partition, offset: record.offset }
      return { events, end: position, poison: { position, error: decoded.error } }
    }
    events.push(decoded)
    offset = record.offset + 1
  }
  return { events, end: { topic, partition, offset }, poison: undefined }
}

function decode(codec: EventCodec, record: LogRecord): RecordedEvent | { error: unknown } {
  try {
    return codec.fromRecord(record)
  } catch (error) {
    return { error }
  }
}
