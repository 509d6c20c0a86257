import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { z } from 'zod'
import { createBatcher } from '../../flow/batcher.ts'
import { arrayParameter, type Cte, statementOf } from '../../postgres/arrays.ts'
import { createPool } from '../../postgres/pool.ts'
import { withTimeout } from '../../timing.ts'
import { type PartitionedRecord, valueBytes } from '../partition.ts'
import { type LogRecord, LogUnavailable, type Position, type Topic } from '../port.ts'
import { guardRefusedCode } from './tables.ts'

const timeoutMs = 5000

interface WriterOptions<Guard> {
  url: string
  schema: string
  /** Called with the written records, in order within each partition. */
  onWritten: (records: LogRecord[]) => void
  /** Returns statements to run atomically with the write of these records. */
  extraWrites?: ((records: PartitionedRecord[]) => Cte[]) | undefined
  /** Returns the statements of the guards. If the last one, named `refused`, returns a row, nothing is written. */
  guardWrites?: ((guards: Guard[]) => Cte[]) | undefined
}

interface Entry<Guard> {
  record: PartitionedRecord
  guard?: Guard
}

/** Two, so that writes continue while the outcome of a timed-out one is unknown. */
export const writerConnections = 2

/** Opens the log's writer. It writes one batch at a time, because two concurrent ones were smaller and cost more. */
export function openWriter<Guard>(options: WriterOptions<Guard>) {
  const { url, schema, onWritten, extraWrites = () => [], guardWrites = () => [] } = options

  const pool = createPool({
    url,
    max: writerConnections,
    applicationName: 'tidegate log',
    statementTimeoutMs: writeTimeoutMs,
    // Longer than the caller's timeout: a late response still settles the outcome of the write.
    queryTimeoutMs: 2 * timeoutMs,
  })

  // Returns undefined for each guarded record if any guard refuses: then writes only the records without a guard.
  async function write(entries: Entry<Guard>[]): Promise<(LogRecord | undefined)[]> {
    const extras = extraWrites(entries.map(({ record }) => record))
    const written = await attempt(entries, extras)
    if (written) return written
    const unguarded = entries.filter(({ guard }) => guard === undefined)
    const retried = unguarded.length > 0 ? await attempt(unguarded, extras) : []
    const results = new Map(unguarded.map((entry, i) => [entry, retried?.[i]]))
    return entries.map((entry) => results.get(entry))
  }

  async function attempt(entries: Entry<Guard>[], extras: Cte[]): Promise<LogRecord[] | undefined> {
    const guards = entries.flatMap(({ guard }) => (guard === undefined ? [] : [guard]))
    const ctes = guards.length > 0 ? [...guardWrites(guards), ...extras] : extras
    const records = entries.map(({ record }) => record)
    const writing = writeGroup({ pool, schema, ctes, isGuarded: guards.length > 0 }, records)
    const written = await withTimeout(writing, timeoutMs).catch((cause) => {
      if (cause instanceof LogUnavailable) throw cause
      throw new LogUnavailable('the log did not confirm the write in time', {
        cause,
        settled: waitUntilSettled(writing),
      })
    })
    if (written) onWritten(written)
    return written
  }

  const appends = createBatcher({
    runBatch: write,
    maxItems: 2000,
    maxBytes: 4 * 1024 * 1024,
    bytesOf: ({ record }: Entry<Guard>) => valueBytes(record),
  })

  return {
    async append(records: PartitionedRecord[]): Promise<Position[]> {
      const written = await appends.run(records.map((record) => ({ record })))
      return written.map(positionOf)
    },
    async appendIf(record: PartitionedRecord, guard: Guard): Promise<boolean> {
      const [written] = await appends.run([{ record, guard }])
      return written !== undefined
    },
    async close(): Promise<void> {
      await appends.idle()
      await pool.end()
    },
  }
}

function positionOf(written: LogRecord | undefined): Position {
  if (!written) throw new Error('only an append with a guard is refused')
  const { topic, partition, offset } = written
  return { topic, partition, offset }
}

async function waitUntilSettled(writing: Promise<unknown>): Promise<void> {
  await writing.catch((error) => (error instanceof LogUnavailable ? error.settled : undefined))
}

interface PartitionSlice {
  topic: Topic
  partition: number
  count: number
}

/** A batch by partition. A slot is the index of a record's slice, and the record's index within the slice. */
interface Layout {
  slices: PartitionSlice[]
  slots: { slice: number; ordinal: number }[]
}

const resultRows = z.tuple([z.object({ result: z.array(z.number()) })])

/** Server-side statement timeout. A write without a response is no longer running after this time. */
const writeTimeoutMs = 4000

interface BatchWrite {
  pool: pg.Pool
  schema: string
  ctes: Cte[]
  isGuarded: boolean
}

// Returns undefined if a guard refused, in which case nothing was written.
async function writeGroup(
  { pool, schema, ctes, isGuarded }: BatchWrite,
  records: PartitionedRecord[],
): Promise<LogRecord[] | undefined> {
  const layout = layOut(records)
  const appended = `${schema}.append_records($1, $2, $3, $4, $5, $6, $7, $8)`
  const guarded = `case when exists (select from refused) then ${schema}.refuse() else ${appended} end`
  const text = `select array_to_json(${isGuarded ? guarded : appended}) as result`
  const client = await pool.connect().catch((cause) => {
    throw new LogUnavailable('cannot reach the log', { cause })
  })
  let failure: unknown
  try {
    const append = { name: `${schema}.append_records`, text, values: parameters(records, layout) }
    const { rows } = await client.query(statementOf(ctes, append))
    return toLogRecords(records, layout, resultRows.parse(rows)[0].result)
  } catch (cause) {
    if (isGuardRefusal(cause)) return undefined
    failure = cause
    const settled = isServerError(cause)
      ? undefined
      : delay(writeTimeoutMs, undefined, { ref: false })
    throw new LogUnavailable('the log did not confirm the write', { cause, settled })
  } finally {
    client.release(failure !== undefined)
  }
}

const isGuardRefusal = (error: unknown): boolean =>
  error instanceof pg.DatabaseError && error.code === guardRefusedCode

// Returns true if the server responded with an error. Without a response, the write may still be running.
const isServerError = (error: unknown): boolean =>
  error instanceof pg.DatabaseError && error.severity === 'ERROR'

function layOut(records: PartitionedRecord[]): Layout {
  const slices: PartitionSlice[] = []
  const indexes = new Map<string, number>()
  const slots = records.map(({ topic, partition }) => {
    const name = `${topic} ${partition}`
    const index = indexes.get(name) ?? slices.push({ topic, partition, count: 0 }) - 1
    indexes.set(name, index)
    const slice = slices[index]
    return { slice: index, ordinal: slice ? slice.count++ : 0 }
  })
  return { slices, slots }
}

function parameters(records: PartitionedRecord[], { slices, slots }: Layout): Buffer[] {
  return [
    arrayParameter(
      'text',
      slices.map((slice) => slice.topic),
    ),
    arrayParameter(
      'integer',
      slices.map((slice) => slice.partition),
    ),
    arrayParameter(
      'integer',
      slices.map((slice) => slice.count),
    ),
    arrayParameter(
      'integer',
      slots.map((slot) => slot.slice + 1),
    ),
    arrayParameter(
      'integer',
      slots.map((slot) => slot.ordinal),
    ),
    arrayParameter(
      'text',
      records.map((record) => record.key),
    ),
    arrayParameter(
      'text',
      records.map((record) => JSON.stringify(record.headers)),
    ),
    arrayParameter(
      'bytea',
      records.map((record) => record.value),
    ),
  ]
}

function toLogRecords(
  records: PartitionedRecord[],
  { slots }: Layout,
  [timestamp, ...bases]: number[],
): LogRecord[] {
  return records.map((record, i) => {
    const slot = slots[i]
    const base = slot && bases[slot.slice]
    if (!slot || base === undefined || timestamp === undefined)
      throw new Error('the statement returned too few offsets')
    return { ...record, offset: base + slot.ordinal, timestamp }
  })
}
