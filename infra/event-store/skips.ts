import { eventTopics } from '../../schemas/events.ts'
import {
  type Batch,
  type EventLog,
  type LogRecord,
  type Position,
  placeName,
  type Topic,
} from '../log/port.ts'
import { readTopic, type TopicReader } from '../log/read-topic.ts'
import type { Logger } from '../telemetry.ts'
import type { EventCodec } from './codec.ts'
import type { RecordedEvent } from './event.ts'

/** Records that cannot be read, and that an operator decided to leave out (`tidegate log skip`). */
export interface Skips {
  /** Asked only of a record that stops its partition. */
  has(position: Position): Promise<boolean>
  close(): Promise<void>
}

interface SkipsOptions {
  log: EventLog
  codec: EventCodec
  logger: Logger
}

const topic = eventTopics.RecordSkipped
const nameOf = ({ offset, ...place }: Position) => `${placeName(place)}/${offset}`

/**
 * Reads the facts when it is first asked, and follows them from then on: nearly always there are none to read. A record
 * among them that cannot be read is left out and reported: it must not take away the way out of all others.
 */
export function createSkips({ log, codec, logger }: SkipsOptions): Skips {
  const skipped = new Set<string>()
  let following: Promise<TopicReader> | undefined

  function note(record: LogRecord): void {
    try {
      const decided = decidedIn(codec.fromRecord(record))
      if (decided) skipped.add(nameOf(decided))
    } catch (err) {
      const { partition, offset } = record
      logger.error(
        { err, topic, partition, offset },
        'a record among the decisions to skip cannot be read; it is left out',
      )
    }
  }

  async function follow(): Promise<TopicReader> {
    const handle = (batches: Batch[]) => batches.flatMap(({ records }) => records).forEach(note)
    const reading = await readTopic({ log, topic, handle })
    await reading.atEnd.catch(async (error) => {
      await reading.stop()
      throw error
    })
    return reading
  }

  return {
    async has(position) {
      following ??= follow().catch((error) => {
        // Whoever asks next tries again.
        following = undefined
        throw error
      })
      await following
      return skipped.has(nameOf(position))
    },
    async close() {
      await (await following?.catch(() => undefined))?.stop()
    },
  }
}

// What an event says was skipped.
function decidedIn(event: RecordedEvent): Position | undefined {
  if (event.type !== 'RecordSkipped') return undefined
  const { skipped_topic, skipped_partition: partition, skipped_offset: offset } = event.data
  return { topic: skipped_topic, partition, offset }
}

/**
 * Returns the record as a copy of the log has it, where records of the topic `moved` have other offsets: a decision to
 * skip one of them gets the offset -1. A record that cannot be read stays as it is.
 */
export function skipInCopy(codec: EventCodec, record: LogRecord, moved: Topic): LogRecord {
  const event = readable(codec, record)
  if (event?.type !== 'RecordSkipped' || event.data.skipped_topic !== moved) return record
  const data = { ...event.data, skipped_offset: -1 }
  return { ...record, value: codec.encode({ type: 'RecordSkipped', data }, event.cause) }
}

function readable(codec: EventCodec, record: LogRecord): RecordedEvent | undefined {
  try {
    return codec.fromRecord(record)
  } catch {
    return undefined
  }
}
