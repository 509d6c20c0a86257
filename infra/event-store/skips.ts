import { eventTopics } from '../../schemas/events.ts'
import {
  type Batch,
  type EventLog,
  type LogRecord,
  type Position,
  partitionName,
  type Topic,
} from '../log/port.ts'
import { readTopic, type TopicReader } from '../log/read-topic.ts'
import type { Logger } from '../telemetry.ts'
import type { EventCodec } from './codec.ts'
import type { RecordedEvent } from './event.ts'

/** Unreadable records that an operator decided to skip (`tidegate log skip`). */
export interface Skips {
  /** Returns true if the record is skipped. Called only for records that stop their partition. */
  has(position: Position): Promise<boolean>
  close(): Promise<void>
}

interface SkipsOptions {
  log: EventLog
  codec: EventCodec
  logger: Logger
}

const topic = eventTopics.RecordSkipped
const nameOf = ({ offset, ...place }: Position) => `${partitionName(place)}/${offset}`

/**
 * Reads the skips at the first call of `has`, because they are rarely needed, and then follows their topic. A skip that
 * can't be read is logged and ignored, so that it doesn't block all others.
 */
export function createSkips({ log, codec, logger }: SkipsOptions): Skips {
  const skipped = new Set<string>()
  let following: Promise<TopicReader> | undefined

  function recordSkip(record: LogRecord): void {
    try {
      const position = skippedPosition(codec.fromRecord(record))
      if (position) skipped.add(nameOf(position))
    } catch (err) {
      const { partition, offset } = record
      logger.error({ err, topic, partition, offset }, 'failed to read a skip record; ignoring it')
    }
  }

  async function follow(): Promise<TopicReader> {
    const handle = (batches: Batch[]) =>
      batches.flatMap(({ records }) => records).forEach(recordSkip)
    const reader = await readTopic({ log, topic, handle })
    await reader.reachedEnd.catch(async (error) => {
      await reader.stop()
      throw error
    })
    return reader
  }

  return {
    async has(position) {
      following ??= follow().catch((error) => {
        // The next call retries.
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

function skippedPosition(event: RecordedEvent): Position | undefined {
  if (event.type !== 'RecordSkipped') return undefined
  const { skipped_topic, skipped_partition: partition, skipped_offset: offset } = event.data
  return { topic: skipped_topic, partition, offset }
}

/**
 * Returns the record for a copy of the log in which the records of `movedTopic` have new offsets: a skip of one of them
 * gets the offset -1, so it matches none. All other records, including unreadable ones, are returned unchanged.
 */
export function rewriteSkip(codec: EventCodec, record: LogRecord, movedTopic: Topic): LogRecord {
  const event = tryDecode(codec, record)
  if (event?.type !== 'RecordSkipped' || event.data.skipped_topic !== movedTopic) return record
  const data = { ...event.data, skipped_offset: -1 }
  return { ...record, value: codec.encode({ type: 'RecordSkipped', data }, event.cause) }
}

function tryDecode(codec: EventCodec, record: LogRecord): RecordedEvent | undefined {
  try {
    return codec.fromRecord(record)
  } catch {
    return undefined
  }
}
