import type { Batch, EventLog, Position } from '../log/port.ts'
import { type ReadingOptions, readTopicToEnd } from '../log/read-topic.ts'
import type { EventCodec } from './codec.ts'
import type { RecordedEvent } from './event.ts'
import { type DecodeOptions, decodeRecords } from './event-batch.ts'
import type { Skips } from './skips.ts'

/** Dependencies for reading events. Records that an operator decided to skip are dropped. */
export interface EventSource {
  log: EventLog
  codec: EventCodec
  skips: Pick<Skips, 'has'>
}

interface ReadEventsOptions extends Pick<ReadingOptions, 'topic' | 'from'> {
  handle: (events: RecordedEvent[]) => Promise<void> | void
}

/** Reads the topic up to its end at the call, and returns the end. Throws at a bad record that isn't skipped. */
export function readEvents(
  source: EventSource,
  { handle, ...options }: ReadEventsOptions,
): Promise<Position[]> {
  return readTopicToEnd({
    ...options,
    log: source.log,
    handle: async (batches) =>
      handle((await Promise.all(batches.map((batch) => decodeEvents(source, batch)))).flat()),
  })
}

/** Decodes the batch. Throws at a record that can't be decoded and isn't skipped. */
export async function decodeEvents(
  options: DecodeOptions,
  { topic, partition, records }: Batch,
): Promise<RecordedEvent[]> {
  const { events, end, poison } = await decodeRecords(options, records)
  if (!poison) return events
  const message = `${topic}/${partition} offset ${end} cannot be read. If no version can read it, skip it with "tidegate log skip".`
  throw new Error(message, { cause: poison.error })
}
