import type { RecordedEvent } from '../../../infra/event-store/event.ts'
import { decodeEvents, type EventSource } from '../../../infra/event-store/read-events.ts'
import type { Batch, LogRecord, Position } from '../../../infra/log/port.ts'
import { readTopic } from '../../../infra/log/read-topic.ts'
import { readableEvent } from '../events.ts'
import type { ExportRow } from './columns.ts'
import type { EventSelection, RowSink } from './selection.ts'

// Records that are appended concurrently can be out of time order by this much.
const maxDisorderMs = 60_000

// Limits memory: an event can have several hundred KB.
const rowsPerGroup = 2000

/** Writes the selected events that are in the log now, in order within each partition. */
export async function writeEvents(
  source: EventSource,
  selection: EventSelection,
  { add, onProgress }: RowSink,
): Promise<void> {
  const { log } = source
  const { topic, since, until } = selection
  const [starts, ends] = await Promise.all([
    log.positionsSince(topic, since),
    log.positionsSince(topic, until + maxDisorderMs),
  ])
  const total = ends.reduce(
    (sum, end) => sum + Math.max(0, end.offset - offsetOf(starts, end.partition)),
    0,
  )
  const unfinished = new Set(
    ends
      .filter((end) => end.offset > offsetOf(starts, end.partition))
      .map(({ partition }) => partition),
  )
  if (unfinished.size === 0) return
  const { promise: reachedEnds, resolve } = Promise.withResolvers<void>()
  let pendingRows: ExportRow[] = []
  let done = 0

  async function addBatch({ partition, records }: Batch): Promise<void> {
    const end = offsetOf(ends, partition)
    const inRange = records.filter(({ offset }) => offset < end)
    pendingRows = pendingRows.concat(
      await rowsOf(source, selection, { topic, partition, records: inRange }),
    )
    if (pendingRows.length >= rowsPerGroup) {
      await add(pendingRows)
      pendingRows = []
    }
    done += inRange.length
    onProgress(done, total)
    if ((records.at(-1)?.offset ?? 0) >= end - 1) unfinished.delete(partition)
    if (unfinished.size === 0) resolve()
  }

  const reading = await readTopic({
    log,
    topic,
    from: (partition) => offsetOf(starts, partition),
    isIncluded: ({ partition }) => unfinished.has(partition),
    stopsAtEnd: true,
    async handle(batches) {
      for (const batch of batches) await addBatch(batch)
    },
  })
  await Promise.race([reachedEnds, reading.reachedEnd]).finally(() => reading.stop())
  await add(pendingRows)
}

const offsetOf = (positions: Position[], partition: number): number =>
  positions.find((position) => position.partition === partition)?.offset ?? 0

async function rowsOf(
  source: EventSource,
  { since, until, organizationId, environment, type, decrypts }: EventSelection,
  { topic, partition, records }: Batch,
): Promise<ExportRow[]> {
  const selected = records.filter(
    ({ timestamp, headers }) =>
      timestamp >= since &&
      timestamp < until &&
      (organizationId === null || headers.organization_id === organizationId) &&
      (environment === null || headers.environment === environment) &&
      (type === null || headers.event_type === type),
  )
  const events = await decodeEvents(source, { topic, partition, records: selected })
  const recordsByOffset = new Map(selected.map((record) => [record.offset, record]))
  return events.map((event) => rowOf(event, recordsByOffset.get(event.position.offset), decrypts))
}

function rowOf(event: RecordedEvent, record: LogRecord | undefined, decrypts: boolean): ExportRow {
  const { type, meta, position, sealed, data } = { sealed: null, ...readableEvent(event, decrypts) }
  return {
    type,
    sealed,
    data,
    partition: position.partition,
    offset: position.offset,
    event_id: meta.eventId,
    time: meta.time,
    organization_id: meta.organizationId,
    environment: meta.environment,
    key: record?.key,
    recorded_at: record?.timestamp,
  }
}
