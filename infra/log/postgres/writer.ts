import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { z } from 'zod'
import { createGroupCommit } from '../../flow/group-commit.ts'
import { arrayParameter, type Cte, statementOf } from '../../postgres/arrays.ts'
import { createPool } from '../../postgres/pool.ts'
import { withTimeout } from '../../timing.ts'
import { type PartitionedRecord, valueBytes } from '../partition.ts'
import { type LogRecord, LogUnavailable, type Position, type Topic } from '../port.ts'
import { refusedCode } from './tables.ts'

const timeoutMs = 5000

interface WriterOptions<Guard> {
  url: string
  schema: string
  /** Called with the written records, in order within each partition. */
  onWritten: (records: LogRecord[]) => void
  /** Returns statements that are written atomically with the records. */
  extraWrites?: ((records: PartitionedRecord[]) => Cte[]) | undefined
  /** Returns the guards' statements. The last one is named `refused`: if it returns a row, nothing is written. */
  guardWrites?: ((guards: Guard[]) => Cte[]) | undefined
}

interface Entry<Guard> {
  record: PartitionedRecord
  guard?: Guard
}

/** Two, so that writes continue while the outcome of a timed-out one is unknown. */
export const writerConnections = 2

/** Opens the log's writer, with group commit. One batch at a time: two concurrent ones were smaller and cost more. */
export function openWriter<Guard>(options: WriterOptions<Guard>) {
  const { url, schema, onWritten, extraWrites = () => [], guardWrites = () => [] } = options

  const pool = createPool({
    url,
    max: writerConnections,
    applicationName: 'tidegate log',
    statementTimeoutMs: writeTimeoutMs,
    // Longer than the caller's timeout, because the response still tells the outcome of the write.
    queryTimeoutMs: 2 * timeoutMs,
  })

  // Returns undefined for each record whose guard refused. If one refuses, retries without the guarded records.
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

  const commit = createGroupCommit({
    write,
    maxRecords: 2000,
    maxBytes: 4 * 1024 * 1024,
    bytesOf: ({ record }: Entry<Guard>) => valueBytes(record),
  })

  return {
    async append(records: PartitionedRecord[]): Promise<Position[]> {
      const written = await commit.append(records.map((record) => ({ record })))
      return written.map(positionOf)
    },
    async appendIf(record: PartitionedRecord, guard: Guard): Promise<boolean> {
      const [written] = await commit.append([{ record, guard }])
      return written !== undefined
    },
    async close(): Promise<void> {
      await commit.idle()
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

/**
 * The arrangement of a batch by partition. Each slot is a record's index in `shares` and its index within the share.
 */
interface Layout {
  shares: PartitionSlice[]
  slots: { share: number; ordinal: number }[]
}

const resultRows = z.tuple([z.object({ result: z.array(z.number()) })])

/** Server-side statement timeout. After this time a client whose write failed knows that it is no longer running. */
const writeTimeoutMs = 4000

interface Group {
  pool: pg.Pool
  schema: string
  ctes: Cte[]
  isGuarded: boolean
}

// Returns undefined if a guard refused, so that nothing was written.
async function writeGroup(
  { pool, schema, ctes, isGuarded }: Group,
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
  error instanceof pg.DatabaseError && error.code === refusedCode

// True if the server responded with an error, so nothing was written. Without a response the write may still be
// running.
const isServerError = (error: unknown): boolean =>
  error instanceof pg.DatabaseError && error.severity === 'ERROR'

function layOut(records: PartitionedRecord[]): Layout {
  const shares: PartitionSlice[] = []
  const indexes = new Map<string, number>()
  const slots = records.map(({ topic, partition }) => {
    const name = `${topic} ${partition}`
    const index = indexes.get(name) ?? shares.push({ topic, partition, count: 0 }) - 1
    indexes.set(name, index)
    const share = shares[index]
    return { share: index, ordinal: share ? share.count++ : 0 }
  })
  return { shares, slots }
}

function parameters(records: PartitionedRecord[], { shares, slots }: Layout): Buffer[] {
  return [
    arrayParameter(
      'text',
      shares.map((share) => share.topic),
    ),
    arrayParameter(
      'integer',
      shares.map((share) => share.partition),
    ),
    arrayParameter(
      'integer',
      shares.map((share) => share.count),
    ),
    arrayParameter(
      'integer',
      slots.map((slot) => slot.share + 1),
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
    const base = slot && bases[slot.share]
    if (!slot || base === undefined || timestamp === undefined)
      throw new Error('the statement returned too few offsets')
    return { ...record, offset: base + slot.ordinal, timestamp }
  })
}
