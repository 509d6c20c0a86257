import { createHash } from 'node:crypto'
import pg from 'pg'
import { z } from 'zod'
import { createBatcher } from '../../flow/batcher.ts'
import { connectionConfig, readOnlySettings } from '../../postgres/pool.ts'
import { type LogRecord, type Position, partitionName } from '../port.ts'

export interface ConsumerOptions {
  url: string
  schema: string
  isReadOnly: boolean
  onLost: () => void
}

/** A read: its start position, and its limits in records and bytes. */
export interface ReadRequest extends Position {
  records: number
  bytes: number
}

// Limit of a statement that reads for several groups.
const maxReadBytes = 16 * 1024 * 1024

type Statement = Required<Pick<pg.QueryConfig<unknown[]>, 'name' | 'text' | 'values'>>

const offsetRows = z.array(
  z.object({ topic: z.string(), partition: z.number(), offset: z.coerce.number() }),
)

/**
 * Creates the connection through which a process consumes. It holds the advisory locks of the groups that the process
 * owns, and runs their reads and commits. If the process dies, Postgres releases the locks with the connection.
 */
export function createConsumerConnection({ schema, onLost, ...options }: ConsumerOptions) {
  const owners = new Map<string, symbol>()
  // Incremented when the connection is lost: another process may own the groups by now.
  let generation = 0
  const { query, end } = createReconnectingConnection(options, () => {
    owners.clear()
    generation += 1
    onLost()
  })

  return {
    /**
     * Acquires the group for the member, or confirms that the member still owns it. Returns the generation of the
     * connection; undefined while another member owns the group.
     */
    async acquire(group: string, member: symbol): Promise<number | undefined> {
      const owner = owners.get(group)
      if (owner === member) return generation
      if (owner) return undefined
      owners.set(group, member)
      try {
        const text = 'select pg_try_advisory_lock($1, $2) as locked'
        const [row] = await query<{ locked: boolean }>({
          name: 'group-lock',
          text,
          values: lockOf(schema, group),
        })
        if (!row?.locked) owners.delete(group)
        return row?.locked ? generation : undefined
      } catch (error) {
        owners.delete(group)
        throw error
      }
    },

    async release(group: string, member: symbol): Promise<void> {
      if (owners.get(group) !== member) return
      const text = 'select pg_advisory_unlock($1, $2)'
      await query({ name: 'group-unlock', text, values: lockOf(schema, group) })
      owners.delete(group)
    },

    async committedPositions(group: string): Promise<Position[]> {
      const text = `select topic, partition, next_offset as "offset" from ${schema}.group_offsets where group_name = $1`
      return offsetRows.parse(await query({ name: 'group-offsets', text, values: [group] }))
    },

    async commit(group: string, next: Position[]): Promise<void> {
      const text = `insert into ${schema}.group_offsets (group_name, topic, partition, next_offset)
        select $1, * from unnest($2::text[], $3::int[], $4::bigint[])
        on conflict (group_name, topic, partition) do update set next_offset = excluded.next_offset`
      await query({ name: 'group-commit', text, values: [group, ...columns(next)] })
    },

    read: createReader(query, schema),

    async close(): Promise<void> {
      owners.clear()
      await end()
    },
  }
}

type ConnectionOptions = Pick<ConsumerOptions, 'url' | 'isReadOnly'>

/** Creates a connection that opens on first use and reopens after it was lost. Runs one query at a time, in order. */
function createReconnectingConnection(options: ConnectionOptions, onLost: () => void) {
  let connection: Promise<pg.Client> | undefined
  let last: Promise<unknown> = Promise.resolve()

  function handleLoss(client: Promise<pg.Client>): void {
    if (connection !== client) return
    connection = undefined
    onLost()
  }

  function open(): Promise<pg.Client> {
    if (connection) return connection
    const opening = connect(options)
    connection = opening
    opening.then(
      (client) => client.once('end', () => handleLoss(opening)),
      () => {
        if (connection === opening) connection = undefined
      },
    )
    return opening
  }

  async function queryNow<Row extends pg.QueryResultRow>(statement: Statement): Promise<Row[]> {
    const opened = open()
    const client = await opened
    try {
      return (await client.query<Row>(statement)).rows
    } catch (error) {
      if (!(error instanceof pg.DatabaseError)) {
        // Without a response from the server, this connection might hold the locks forever.
        handleLoss(opened)
        void client.end().catch(() => {})
      }
      throw error
    }
  }

  return {
    query<Row extends pg.QueryResultRow>(statement: Statement): Promise<Row[]> {
      const rows = last.then(() => queryNow<Row>(statement))
      last = rows.catch(() => {})
      return rows
    },
    async end(): Promise<void> {
      const closing = connection
      connection = undefined
      await closing?.then((client) => client.end()).catch(() => {})
    },
  }
}

export type ConsumerConnection = ReturnType<typeof createConsumerConnection>

// Postgres plans each statement only once, with index scans for any table size. By default it planned every read again,
// which took longer than the read.
const indexScansOnly = {
  plan_cache_mode: 'force_generic_plan',
  enable_seqscan: 'off',
  enable_bitmapscan: 'off',
}

async function connect({ url, isReadOnly }: ConnectionOptions): Promise<pg.Client> {
  const config = connectionConfig({
    url,
    applicationName: 'tidegate consumer',
    queryTimeoutMs: 10_000,
    // If a crash of Postgres loses committed offsets, the records are delivered again.
    settings: { synchronous_commit: 'off', ...indexScansOnly, ...(isReadOnly && readOnlySettings) },
  })
  const client = new pg.Client(config)
  client.on('error', () => {})
  await client.connect()
  return client
}

// Returns two 32-bit numbers, which Postgres keeps apart from the 64-bit locks of `lockKey`.
function lockOf(schema: string, group: string): [number, number] {
  const digest = createHash('sha256').update(`${schema}/${group}`).digest()
  return [digest.readInt32BE(0), digest.readInt32BE(4)]
}

const columns = (positions: Position[]) => [
  positions.map((p) => p.topic),
  positions.map((p) => p.partition),
  positions.map((p) => p.offset),
]

type Query = <Row extends pg.QueryResultRow>(statement: Statement) => Promise<Row[]>

/**
 * Returns a function that reads the next records at each position. Concurrent reads of several groups share a
 * statement, and reads of the same position share its records.
 */
function createReader(query: Query, schema: string) {
  const reads = createBatcher({
    runBatch: read,
    maxItems: Infinity,
    maxBytes: maxReadBytes,
    bytesOf: ({ bytes }: ReadRequest) => bytes,
  })

  async function read(requests: ReadRequest[]): Promise<LogRecord[][]> {
    const byName = new Map(requests.map((from) => [nameOf(from), from]))
    const distinct = [...byName.values()]
    const values = [
      ...columns(distinct),
      distinct.map(({ records }) => records),
      distinct.map(({ bytes }) => bytes),
    ]
    const rows = await query<RecordRow>({ name: 'log-read', text: readText(schema), values })
    const byRequest = Map.groupBy(rows, ({ place }) => distinct[place - 1])
    // Sort here, because sorting in Postgres took a fifth of the read.
    const toRecords = (group: RecordRow[]) =>
      group.map(toRecord).sort((a, b) => a.offset - b.offset)
    const records = new Map([...byRequest].map(([from, group]) => [from, toRecords(group)]))
    return requests.map((from) => records.get(byName.get(nameOf(from))) ?? [])
  }

  return (from: ReadRequest[]): Promise<LogRecord[][]> => reads.run(from)
}

const nameOf = ({ offset, records, bytes, ...place }: ReadRequest): string =>
  [partitionName(place), offset, records, bytes].join('/')

// Encodes values as base64: the driver only reads text, and the default, hex, is 50 % longer and slower to decode.
const readText = (schema: string) => `
select w.place::int, r.topic, r.partition, r."offset", r.key, r.headers, encode(r.value, 'base64') as value, r.stored_at
from unnest($1::text[], $2::int[], $3::bigint[], $4::int[], $5::int[]) with ordinality
  as w(topic, partition, next, records, bytes, place)
cross join lateral (
  select *, sum(octet_length(value)) over (order by "offset") - octet_length(value) as bytes_before from (
    select * from ${schema}.records
    where topic = w.topic and partition = w.partition and "offset" >= w.next order by "offset" limit w.records
  ) as next_records
) as r
where r.bytes_before < w.bytes`

interface RecordRow {
  place: number
  topic: string
  partition: number
  offset: string
  key: string
  headers: Record<string, string>
  value: string
  stored_at: string
}

const toRecord = ({ place, offset, value, stored_at, ...row }: RecordRow): LogRecord => ({
  ...row,
  offset: Number(offset),
  value: Buffer.from(value, 'base64'),
  timestamp: Number(stored_at),
})
