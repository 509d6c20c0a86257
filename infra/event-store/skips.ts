import { eventTopics } from '../../schemas/events.ts'
import { type Batch, type EventLog, type LogRecord, type Position, placeName } from '../log/port.ts'
import { readTopic, type TopicReader } from '../log/read-topic.ts'
import type { EventCodec, RecordedEvent } from './codec.ts'

/** Records that cannot be read, and that an operator decided to leave out (`tidegate log skip`). */
export interface Skips {
  /** Asked only of a record that stops its partition. */
  has(position: Position): Promise<boolean>
  close(): Promise<void>
}

interface SkipsOptions {
  log: EventLog
  codec: EventCodec
}

const topic = eventTopics.RecordSkipped
const nameOf = ({ offset, ...place }: Position) => `${placeName(place)}/${offset}`

/** Reads the facts when it is first asked, and follows them from then on: nearly always there are none to read. */
export function createSkips({ log, codec }: SkipsOptions): Skips {
  const skipped = new Set<string>()
  let following: Promise<TopicReader> | undefined

  function note(event: RecordedEvent): void {
    if (event.type !== 'RecordSkipped') return
    const { skipped_topic, skipped_partition: partition, skipped_offset: offset } = event.data
    skipped.add(nameOf({ topic: skipped_topic, partition, offset }))
  }

  async function follow(): Promise<TopicReader> {
    const handle = (batches: Batch[]) => {
      for (const { records } of batches) for (const record of records) note(codec.fromRecord(record))
    }
    const reading = await readTopic({ log, topic, handle })
    await reading.atEnd.catch(async (error) => {
      following = undefined
      await reading.stop()
      throw error
    })
    return reading
  }

  return {
    async has(position) {
      following ??= follow()
      await following
      return skipped.has(nameOf(position))
    },
    async close() {
      await (await following?.catch(() => undefined))?.stop()
    },
  }
}

/** In a copy of the log, where a skipped record may have another offset; -1 = it is not in the copy. */
export function skipInCopy(
  codec: EventCodec,
  record: LogRecord,
  offsetOf: (skipped: Position) => number | undefined,
): LogRecord {
  if (record.headers.event_type !== 'RecordSkipped') return record
  const event = codec.fromRecord(record)
  if (event.type !== 'RecordSkipped') return record
  const { skipped_topic, skipped_partition: partition, skipped_offset: offset } = event.data
  const moved = offsetOf({ topic: skipped_topic, partition, offset }) ?? -1
  if (moved === offset) return record
  const data = { ...event.data, skipped_offset: moved }
  return { ...record, value: codec.encode({ type: 'RecordSkipped', data }, event.cause) }
}
