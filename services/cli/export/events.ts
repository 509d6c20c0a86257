import type { RecordedEvent } from '../../../infra/event-store/event.ts'
import { type EventSource, eventsIn } from '../../../infra/event-store/read-events.ts'
import type { Batch, LogRecord, Position } from '../../../infra/log/port.ts'
import { readTopic } from '../../../infra/log/read-topic.ts'
import { readableEvent } from '../events.ts'
import type { ExportRow } from './columns.ts'
import type { EventSelection, RowSink } from './selection.ts'

// Records that are appended at once may be a little out of order.
const outOfOrderMs = 60_000

// An event may have some hundred KB.
const together = 2000

/** Writes the events that the log has at the call, in the order of their partition. */
export async function writeEvents(
  source: EventSource,
  selection: EventSelection,
  { add, onProgress }: RowSink,
): Promise<void> {
  const { log } = source
  const { topic, since, until } = selection
  const [starts, ends] = await Promise.all([
    log.positionsSince(topic, since),
    log.positionsSince(topic, until + outOfOrderMs),
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
  const { promise: passedEnds, resolve } = Promise.withResolvers<void>()
  let waiting: ExportRow[] = []
  let done = 0

  async function take({ partition, records }: Batch): Promise<void> {
    const end = offsetOf(ends, partition)
    const inRange = records.filter(({ offset }) => offset < end)
    waiting = waiting.concat(
      await rowsOf(source, selection, { topic, partition, records: inRange }),
    )
    if (waiting.length >= together) {
      await add(waiting)
      waiting = []
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
    isRead: ({ partition }) => unfinished.has(partition),
    endsThere: true,
    async handle(batches) {
      for (const batch of batches) await take(batch)
    },
  })
  await Promise.race([passedEnds, reading.atEnd]).finally(() => reading.stop())
  await add(waiting)
}

const offsetOf = (positions: Position[], partition: number): number =>
  positions.find((position) => position.partition === partition)?.offset ?? 0

async function rowsOf(
  source: EventSource,
  { since, until, organizationId, environment, type, isOpen }: EventSelection,
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
  const events = await eventsIn(source, { topic, partition, records: selected })
  const recordOf = new Map(selected.map((record) => [record.offset, record]))
  return events.map((event) => rowOf(event, recordOf.get(event.position.offset), isOpen))
}

function rowOf(event: RecordedEvent, record: LogRecord | undefined, isOpen: boolean): ExportRow {
  const { type, meta, position, sealed, data } = { sealed: null, ...readableEvent(event, isOpen) }
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
