import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { z } from 'zod'
import { createGroupCommit } from '../../flow/group-commit.ts'
import { arrayParameter, type Part, statementOf } from '../../postgres/arrays.ts'
import { createPool } from '../../postgres/pool.ts'
import { within } from '../../timing.ts'
import { type PlacedRecord, valueBytes } from '../partition.ts'
import { type LogRecord, LogUnavailable, type Position, type Topic } from '../port.ts'
import { refusedCode } from './tables.ts'

const timeoutMs = 5000

interface WriterOptions<Guard> {
  url: string
  schema: string
  /** Called with what was written, each partition's records in their order. */
  onWritten: (records: LogRecord[]) => void
  /** What is written with the records, or not at all. */
  storedWith?: ((records: PlacedRecord[]) => Part[]) | undefined
  /** The last of them is `refused`: where it returns a row, nothing is written. */
  guardedBy?: ((guards: Guard[]) => Part[]) | undefined
}

interface Entry<Guard> {
  record: PlacedRecord
  guard?: Guard
}

/** The second is for while it is not known what became of a batch. */
export const writerConnections = 2

/** One batch at a time: what comes while it is written is the next. Two side by side were smaller, and cost more. */
export function openWriter<Guard>(options: WriterOptions<Guard>) {
  const { url, schema, onWritten, storedWith = () => [], guardedBy = () => [] } = options

  const pool = createPool({
    url,
    max: writerConnections,
    applicationName: 'tidegate log',
    statementTimeoutMs: writeTimeoutMs,
    // Longer than a caller waits: the server's answer tells what became of the write.
    queryTimeoutMs: 2 * timeoutMs,
  })

  // undefined for each record that was refused.
  async function write(entries: Entry<Guard>[]): Promise<(LogRecord | undefined)[]> {
    const stored = storedWith(entries.map(({ record }) => record))
    const written = await attempt(entries, stored)
    if (written) return written
    const unguarded = entries.filter(({ guard }) => guard === undefined)
    const again = unguarded.length > 0 ? await attempt(unguarded, stored) : []
    const places = new Map(unguarded.map((entry, i) => [entry, again?.[i]]))
    return entries.map((entry) => places.get(entry))
  }

  async function attempt(
    entries: Entry<Guard>[],
    stored: Part[],
  ): Promise<LogRecord[] | undefined> {
    const guards = entries.flatMap(({ guard }) => (guard === undefined ? [] : [guard]))
    const parts = guards.length > 0 ? [...guardedBy(guards), ...stored] : stored
    const records = entries.map(({ record }) => record)
    const writing = writeGroup({ pool, schema, parts, isGuarded: guards.length > 0 }, records)
    const written = await within(writing, timeoutMs).catch((cause) => {
      if (cause instanceof LogUnavailable) throw cause
      throw new LogUnavailable('the log did not confirm in time', {
        cause,
        settled: fateOf(writing),
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
    async append(records: PlacedRecord[]): Promise<Position[]> {
      const written = await commit.append(records.map((record) => ({ record })))
      return written.map(positionOf)
    },
    async appendIf(record: PlacedRecord, guard: Guard): Promise<boolean> {
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

async function fateOf(writing: Promise<unknown>): Promise<void> {
  await writing.catch((error) => (error instanceof LogUnavailable ? error.settled : undefined))
}

interface Share {
  topic: Topic
  partition: number
  count: number
}

interface Layout {
  shares: Share[]
  slots: { share: number; place: number }[]
}

const answer = z.tuple([z.object({ answer: z.array(z.number()) })])

/**
 * The server ends a write that takes longer. After that, a client that gave up knows that none is under way.
 */
const writeTimeoutMs = 4000

interface Group {
  pool: pg.Pool
  schema: string
  parts: Part[]
  isGuarded: boolean
}

// undefined: a guard refused, and nothing was written.
async function writeGroup(
  { pool, schema, parts, isGuarded }: Group,
  records: PlacedRecord[],
): Promise<LogRecord[] | undefined> {
  const layout = layOut(records)
  const appended = `${schema}.append_records($1, $2, $3, $4, $5, $6, $7, $8)`
  const guarded = `case when exists (select from refused) then ${schema}.refuse() else ${appended} end`
  const text = `select array_to_json(${isGuarded ? guarded : appended}) as answer`
  const client = await pool.connect().catch((cause) => {
    throw new LogUnavailable('the log could not be reached', { cause })
  })
  let failure: unknown
  try {
    const append = { name: `${schema}.append_records`, text, values: parameters(records, layout) }
    const { rows } = await client.query(statementOf(parts, append))
    return writtenOf(records, layout, answer.parse(rows)[0].answer)
  } catch (cause) {
    if (isGuardsRefusal(cause)) return undefined
    failure = cause
    const settled = isRefusal(cause) ? undefined : delay(writeTimeoutMs, undefined, { ref: false })
    throw new LogUnavailable('the log did not confirm the write', { cause, settled })
  } finally {
    client.release(failure !== undefined)
  }
}

const isGuardsRefusal = (error: unknown): boolean =>
  error instanceof pg.DatabaseError && error.code === refusedCode

// The server refused: nothing was written. Without its answer the write may still go on.
const isRefusal = (error: unknown): boolean =>
  error instanceof pg.DatabaseError && error.severity === 'ERROR'

function layOut(records: PlacedRecord[]): Layout {
  const shares: Share[] = []
  const indexes = new Map<string, number>()
  const slots = records.map(({ topic, partition }) => {
    const name = `${topic} ${partition}`
    const index = indexes.get(name) ?? shares.push({ topic, partition, count: 0 }) - 1
    indexes.set(name, index)
    const share = shares[index]
    return { share: index, place: share ? share.count++ : 0 }
  })
  return { shares, slots }
}

function parameters(records: PlacedRecord[], { shares, slots }: Layout): Buffer[] {
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
      slots.map((slot) => slot.place),
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

function writtenOf(
  records: PlacedRecord[],
  { slots }: Layout,
  [timestamp, ...bases]: number[],
): LogRecord[] {
  return records.map((record, i) => {
    const slot = slots[i]
    const base = slot && bases[slot.share]
    if (!slot || base === undefined || timestamp === undefined)
      throw new Error('the answer has too few numbers')
    return { ...record, offset: base + slot.place, timestamp }
  })
}
