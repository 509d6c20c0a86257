import { createHash } from 'node:crypto'
import pg from 'pg'
import { z } from 'zod'
import { connectionConfig, type Db, readOnly } from '../../postgres/pool.ts'
import type { LogRecord, Position, Topic } from '../port.ts'
import type { Limits } from './tail.ts'

export interface SessionOptions {
  url: string
  schema: string
  isReadOnly: boolean
  onLost: () => void
}

type Statement = Required<Pick<pg.QueryConfig<unknown[]>, 'name' | 'text' | 'values'>>

const offsetRows = z.array(
  z.object({ topic: z.string(), partition: z.number(), offset: z.coerce.number() }),
)

/**
 * The connection through which a process consumes. It holds the advisory lock of each group that this process works
 * for, and all reads and commits of those groups go through it. When the process dies, connection and locks end.
 */
export function createSession({ schema, onLost, ...options }: SessionOptions) {
  const owners = new Map<string, symbol>()
  let connection: Promise<pg.Client> | undefined
  // Counts connections: what was known under an earlier one may belong to another process by now.
  let generation = 0
  let last: Promise<unknown> = Promise.resolve()

  function lost(client: Promise<pg.Client>): void {
    if (connection !== client) return
    connection = undefined
    owners.clear()
    generation += 1
    onLost()
  }

  function open(): Promise<pg.Client> {
    if (connection) return connection
    const opening = connect({ schema, ...options })
    connection = opening
    opening.then(
      (client) => client.once('end', () => lost(opening)),
      () => {
        if (connection === opening) connection = undefined
      },
    )
    return opening
  }

  // One query at a time, in the order asked.
  function query<Row extends pg.QueryResultRow>(statement: Statement): Promise<Row[]> {
    const answer = last.then(() => queryNow<Row>(statement))
    last = answer.catch(() => {})
    return answer
  }

  async function queryNow<Row extends pg.QueryResultRow>(statement: Statement): Promise<Row[]> {
    const opened = open()
    const client = await opened
    try {
      return (await client.query<Row>(statement)).rows
    } catch (error) {
      if (!(error instanceof pg.DatabaseError)) {
        // Without an answer it may still hold the locks, and nobody could go on.
        lost(opened)
        void client.end().catch(() => {})
      }
      throw error
    }
  }

  const positions = async (statement: Statement): Promise<Position[]> =>
    offsetRows.parse(await query(statement))

  return {
    isOpen: () => connection !== undefined,

    /**
     * Whether `me` may consume for the group now: a number that changes with the connection, or undefined while
     * another has the group.
     */
    async own(group: string, me: symbol): Promise<number | undefined> {
      const owner = owners.get(group)
      if (owner === me) return generation
      if (owner) return undefined
      owners.set(group, me)
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

    async release(group: string, me: symbol): Promise<void> {
      if (owners.get(group) !== me) return
      const text = 'select pg_advisory_unlock($1, $2)'
      await query({ name: 'group-unlock', text, values: lockOf(schema, group) })
      owners.delete(group)
    },

    committed: (group: string): Promise<Position[]> =>
      positions({
        name: 'group-offsets',
        text: `select topic, partition, next_offset as "offset" from ${schema}.group_offsets where group_name = $1`,
        values: [group],
      }),

    async commit(group: string, next: Position[]): Promise<void> {
      const text = `insert into ${schema}.group_offsets (group_name, topic, partition, next_offset)
        select $1, * from unnest($2::text[], $3::int[], $4::bigint[])
        on conflict (group_name, topic, partition) do update set next_offset = excluded.next_offset`
      await query({ name: 'group-commit', text, values: [group, ...columns(next)] })
    },

    ends: (topics: Topic[]): Promise<Position[]> =>
      positions({
        name: 'log-ends',
        text: `select topic, partition, next_offset as "offset" from ${schema}.partitions where topic = any($1)`,
        values: [topics],
      }),

    /** The next records of each of the positions' partitions; the limits are for each of them. */
    async read(from: Position[], { records, bytes }: Limits): Promise<LogRecord[]> {
      const values = [...columns(from), records, bytes]
      return (await query<RecordRow>({ name: 'log-read', text: readText(schema), values })).map(
        toRecord,
      )
    },

    async close(): Promise<void> {
      const closing = connection
      connection = undefined
      owners.clear()
      await closing?.then((client) => client.end()).catch(() => {})
    },
  }
}

export type Session = ReturnType<typeof createSession>

async function connect({
  url,
  schema,
  isReadOnly,
}: Omit<SessionOptions, 'onLost'>): Promise<pg.Client> {
  const config = connectionConfig({
    url,
    applicationName: 'tidegate consumer',
    queryTimeoutMs: 10_000,
    // A committed offset may be lost in a crash of Postgres: records then come again.
    settings: { synchronous_commit: 'off', ...(isReadOnly && readOnly) },
  })
  const client = new pg.Client(config)
  client.on('error', () => {})
  await client.connect()
  await client.query('select pg_advisory_lock_shared($1, $2)', lockOf(schema, consumers))
  return client
}

// The shared lock of every process that consumes.
const consumers = ' consumers'

/** How many processes consume. Locks are shown to every user of the database. */
export async function countConsumers(db: Db, schema: string): Promise<number> {
  const [first, second] = lockOf(schema, consumers)
  const { rows } = await db.query<{ count: number }>(
    `select count(*)::int as count from pg_locks where locktype = 'advisory' and objsubid = 2
       and database = (select oid from pg_database where datname = current_database())
       and classid = $1::bigint::oid and objid = $2::bigint::oid`,
    [first >>> 0, second >>> 0],
  )
  return rows[0]?.count ?? 0
}

// Two numbers, so that the locks of groups are none of the 64-bit locks of others.
function lockOf(schema: string, group: string): [number, number] {
  const digest = createHash('sha256').update(`${schema}/${group}`).digest()
  return [digest.readInt32BE(0), digest.readInt32BE(4)]
}

const columns = (positions: Position[]) => [
  positions.map((p) => p.topic),
  positions.map((p) => p.partition),
  positions.map((p) => p.offset),
]

// As base64, because the driver reads text alone, and hexadecimal digits are half as long again and slower to read.
const readText = (schema: string) => `
select r.topic, r.partition, r."offset", r.key, r.headers, encode(r.value, 'base64') as value, r.stored_at
from unnest($1::text[], $2::int[], $3::bigint[]) as w(topic, partition, next)
cross join lateral (
  select *, sum(octet_length(value)) over (order by "offset") - octet_length(value) as bytes_before from (
    select * from ${schema}.records
    where topic = w.topic and partition = w.partition and "offset" >= w.next order by "offset" limit $4
  ) as next_records
) as r
where r.bytes_before < $5 order by r.topic, r.partition, r."offset"`

interface RecordRow {
  topic: string
  partition: number
  offset: string
  key: string
  headers: Record<string, string>
  value: string
  stored_at: string
}

const toRecord = ({ offset, value, stored_at, ...row }: RecordRow): LogRecord => ({
  ...row,
  offset: Number(offset),
  value: Buffer.from(value, 'base64'),
  timestamp: Number(stored_at),
})
