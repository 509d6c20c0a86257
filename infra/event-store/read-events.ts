import type { Batch, EventLog, LogRecord, Position } from '../log/port.ts'
import { type ReadingOptions, readTopicToEnd } from '../log/read-topic.ts'
import type { EventCodec, RecordedEvent } from './codec.ts'
import type { DataKeys } from './data-keys.ts'
import { type Decoding, decodeRecords } from './event-batch.ts'
import type { Skips } from './skips.ts'

/** What events are read from. Whoever reads a topic leaves out what operators decided to skip. */
export interface EventSource {
  log: EventLog
  codec: EventCodec
  skips: Pick<Skips, 'has'>
}

interface Reading extends Pick<ReadingOptions, 'topic' | 'from' | 'isRead'>, Pick<Decoding, 'types'> {
  // Which of one partition's next records are read. Others are passed over undecoded. Default: all are.
  select?: (records: LogRecord[]) => LogRecord[]
  // Of a topic whose keys are ids of sessions: they are looked up first, so that nothing is decoded twice.
  dataKeys?: Pick<DataKeys, 'load'> | undefined
  handle: (events: RecordedEvent[]) => Promise<void> | void
}

/** Reads what there is at the call, and returns where that ends. Throws at a record that cannot be read or skipped. */
export function readEvents(source: EventSource, { handle, ...reading }: Reading): Promise<Position[]> {
  const readAll = (batches: Batch[]) =>
    Promise.all(batches.map((one) => read({ ...source, ...reading }, one)))
  return readTopicToEnd({
    ...{ ...reading, log: source.log },
    handle: async (batches) => handle((await readAll(batches)).flat()),
  })
}

async function read(
  source: EventSource & Omit<Reading, 'handle'>,
  { topic, partition, records }: Batch,
): Promise<RecordedEvent[]> {
  const { select, dataKeys } = source
  const selected = select ? select(records) : records
  await dataKeys?.load([...new Set(selected.map(({ key }) => key))])
  const { events, end, poison } = await decodeRecords(source, selected)
  if (!poison) return events
  const message = `${topic}/${partition} offset ${end} cannot be read. Where nothing can read it, leave it out by "tidegate log skip".`
  throw new Error(message, { cause: poison.error })
}
