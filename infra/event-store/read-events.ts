import type { Batch, EventLog, Position } from '../log/port.ts'
import { type ReadingOptions, readTopicToEnd } from '../log/read-topic.ts'
import type { EventCodec } from './codec.ts'
import type { RecordedEvent } from './event.ts'
import { type Decoding, decodeRecords } from './event-batch.ts'
import type { Skips } from './skips.ts'

/** What events are read from. Whoever reads a topic leaves out what operators decided to skip. */
export interface EventSource {
  log: EventLog
  codec: EventCodec
  skips: Pick<Skips, 'has'>
}

interface Reading extends Pick<ReadingOptions, 'topic' | 'from'> {
  handle: (events: RecordedEvent[]) => Promise<void> | void
}

/** Reads what there is at the call, and returns where that ends. Throws at a record that cannot be read or skipped. */
export function readEvents(
  source: EventSource,
  { handle, ...reading }: Reading,
): Promise<Position[]> {
  return readTopicToEnd({
    ...reading,
    log: source.log,
    handle: async (batches) =>
      handle((await Promise.all(batches.map((batch) => eventsIn(source, batch)))).flat()),
  })
}

/** The events of the records. Throws at one that cannot be read or skipped. */
export async function eventsIn(
  decoding: Decoding,
  { topic, partition, records }: Batch,
): Promise<RecordedEvent[]> {
  const { events, end, poison } = await decodeRecords(decoding, records)
  if (!poison) return events
  const message = `${topic}/${partition} offset ${end} cannot be read. Where nothing can read it, leave it out by "tidegate log skip".`
  throw new Error(message, { cause: poison.error })
}
