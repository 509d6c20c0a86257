import path from 'node:path'
import type { RecordedEvent } from '../../../infra/event-store/codec.ts'
import { type EventSource, eventsIn } from '../../../infra/event-store/read-events.ts'
import type { EventLog, LogRecord } from '../../../infra/log/port.ts'
import { readTopic } from '../../../infra/log/read-topic.ts'
import { readableEvent } from '../events.ts'
import { type ExportRow, eventColumns } from './columns.ts'
import type { ExportManifest, ExportPart } from './manifest.ts'
import { openPart, type PartWriter } from './part.ts'

interface Range {
  topic: string
  /** Epoch milliseconds. */
  since: number
  until: number
}

/** Ranges of offsets, of what the log has now. */
export async function eventParts(
  log: EventLog,
  { topic, since, until }: Range,
  { format, each }: { format: string; each: number },
): Promise<ExportPart[]> {
  const [starts, firsts, ends, untils] = await Promise.all([
    log.positionsSince(topic, since),
    log.firstPositions(topic),
    log.endPositions(topic),
    log.positionsSince(topic, until + outOfOrderMs),
  ])
  return ends.flatMap(({ partition, offset: end }) => {
    const offsetIn = (positions: typeof ends) =>
      positions.find((position) => position.partition === partition)?.offset ?? end
    const from = Math.max(offsetIn(starts), offsetIn(firsts))
    const to = Math.min(offsetIn(untils), end)
    return Array.from({ length: Math.max(0, Math.ceil((to - from) / each)) }, (_, i) => ({
      file: `events-${partition}-${String(from + i * each).padStart(15, '0')}.${format}`,
      ...{ partition, from: from + i * each, to: Math.min(to, from + (i + 1) * each), rows: null },
    }))
  })
}

// Records that are appended at once may be a little out of order.
const outOfOrderMs = 60_000

// An event may have some hundred KB.
const together = 2000

interface Writing {
  source: EventSource
  folder: string
  manifest: ExportManifest
  topic: string
  onPart(part: ExportPart, rows: number): Promise<void>
  /** Gets how many offsets were passed. */
  onDone(offsets: number): void
}

/** Makes the parts, partition by partition, each from one reading of it. */
export async function writeEvents(writing: Writing, parts: ExportPart[]): Promise<void> {
  for (const [partition, some] of Map.groupBy(parts, (part) => part.partition ?? 0))
    await writePartition(writing, partition, some)
}

async function writePartition(writing: Writing, partition: number, parts: ExportPart[]): Promise<void> {
  const { source, topic } = writing
  const end = parts.at(-1)?.to ?? 0
  const writer = startParts(writing, parts)
  const { promise: passedEnd, resolve } = Promise.withResolvers<void>()
  const reading = await readTopic({
    ...{ log: source.log, topic, from: () => parts[0]?.from ?? 0, endsThere: true },
    isRead: (place) => place.partition === partition,
    async handle(batches) {
      for (const { records } of batches) {
        await writer.add(records.filter(({ offset }) => offset < end))
        if ((records.at(-1)?.offset ?? 0) >= end - 1) resolve()
      }
    },
  })
  await Promise.race([passedEnd, reading.atEnd]).finally(() => reading.stop())
  await writer.finish()
}

function startParts(writing: Writing, parts: ExportPart[]) {
  const { folder, manifest } = writing
  let writer: PartWriter | undefined
  let next = 0

  async function open(part: ExportPart): Promise<PartWriter> {
    writer ??= await openPart(path.join(folder, part.file), {
      format: manifest.format,
      columns: eventColumns,
      together,
    })
    return writer
  }

  async function finish(part: ExportPart): Promise<void> {
    const rows = await (await open(part)).finish()
    writer = undefined
    next++
    writing.onDone(part.to - part.from)
    await writing.onPart(part, rows)
  }

  return {
    async add(records: LogRecord[]): Promise<void> {
      const last = records.at(-1)?.offset ?? -1
      for (let part = parts[next]; part && part.from <= last; part = parts[next]) {
        const { from, to } = part
        const inside = records.filter(({ offset }) => offset >= from && offset < to)
        await (await open(part)).add(await rowsOf(writing, inside))
        if (last < to - 1) return
        await finish(part)
      }
    },
    // The last offsets of a range may have no record.
    async finish(): Promise<void> {
      for (let part = parts[next]; part; part = parts[next]) await finish(part)
    },
  }
}

async function rowsOf({ source, manifest, topic }: Writing, records: LogRecord[]): Promise<ExportRow[]> {
  const { since, until, filters } = manifest
  const selected = records.filter(
    ({ timestamp, headers }) =>
      timestamp >= since &&
      timestamp < until &&
      (filters.organization_id === null || headers.organization_id === filters.organization_id) &&
      (filters.environment === null || headers.environment === filters.environment) &&
      (filters.type === null || headers.event_type === filters.type),
  )
  const events = await eventsIn(source, { topic, partition: records[0]?.partition ?? 0, records: selected })
  const recordOf = new Map(selected.map((record) => [record.offset, record]))
  return events.map((event) => rowOf(event, recordOf.get(event.position.offset), manifest.is_open))
}

function rowOf(event: RecordedEvent, record: LogRecord | undefined, isOpen: boolean): ExportRow {
  const { type, meta, position, sealed, data } = { sealed: null, ...readableEvent(event, isOpen) }
  return {
    ...{ type, sealed, data, partition: position.partition, offset: position.offset },
    ...{ event_id: meta.eventId, time: meta.time },
    ...{ organization_id: meta.organizationId, environment: meta.environment },
    ...{ key: record?.key, recorded_at: record?.timestamp },
  }
}
