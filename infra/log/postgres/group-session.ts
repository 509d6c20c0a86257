import { createHash } from 'node:crypto'
import pg from 'pg'
import { z } from 'zod'
import { connectionConfig } from '../../postgres/pool.ts'
import type { LogRecord, Position, Topic } from '../port.ts'
import type { TopicInfo } from './tables.ts'

export interface GroupSessionOptions {
  url: string
  schema: string
  group: string
  topics: TopicInfo[]
  onLost: () => void
}

const membersRow = z.array(z.object({ lock: z.coerce.number(), pid: z.number() }))
const lockRow = z.array(z.object({ topic: z.string(), partition: z.number(), locked: z.boolean() }))
const offsetRow = z.array(z.object({ topic: z.string(), partition: z.number(), next: z.coerce.number() }))
const pidRow = z.tuple([z.object({ pid: z.number() })])

/** Partition numbers are smaller. The number itself stands for membership of the topic's group. */
const membershipLock = 0xffff

/**
 * One connection of a consumer. It has an advisory lock for each assigned partition; all reads and offset
 * commits go through it. When the process dies, connection and locks end. A consumer without its locks can
 * neither read nor commit.
 */
export async function openGroupSession(options: GroupSessionOptions) {
  const { url, schema, group, topics } = options
  const groupKey = createHash('sha256').update(`${schema}/${group}`).digest().readInt32BE(0) & 0x7fffffff
  const ids = new Map(topics.map((topic) => [topic.topic, topic.id]))
  const lockKey = (topic: string, number: number) => (ids.get(topic) ?? 0) * 0x10000 + number
  const client = await connect(url)
  client.on('end', options.onLost)
  const pid = await join()

  async function join(): Promise<number> {
    for (const { topic } of topics) {
      await client.query('select pg_advisory_lock_shared($1, $2)', [groupKey, lockKey(topic, membershipLock)])
    }
    return pidRow.parse((await client.query('select pg_backend_pid() as pid')).rows)[0].pid
  }

  const keysOf = (partitions: TopicPartition[]) => [
    partitions.map((p) => p.topic),
    partitions.map((p) => p.partition),
    groupKey,
    partitions.map((p) => lockKey(p.topic, p.partition)),
  ]

  return {
    async assignment(): Promise<TopicPartition[]> {
      const text = `select objid::bigint as lock, pid from pg_locks where locktype = 'advisory' and objsubid = 2
        and granted and classid = $1::bigint::oid and database = (select oid from pg_database where datname = current_database())`
      const members = membersRow.parse((await client.query(text, [groupKey])).rows)
      return topics.flatMap(({ topic, partitions }) => {
        const lock = lockKey(topic, membershipLock)
        const pids = members.filter((member) => member.lock === lock).map((member) => member.pid)
        return assignPartitions(partitions, pids, pid).map((partition) => ({ topic, partition }))
      })
    },

    async lock(partitions: TopicPartition[]): Promise<TopicPartition[]> {
      const text = `select topic, partition, pg_try_advisory_lock($3, key) as locked
        from unnest($1::text[], $2::int[], $4::int[]) as w(topic, partition, key)`
      return lockRow.parse((await client.query(text, keysOf(partitions))).rows).filter((row) => row.locked)
    },

    async unlock(partitions: TopicPartition[]): Promise<void> {
      const text = `select pg_advisory_unlock($3, key)
        from unnest($1::text[], $2::int[], $4::int[]) as w(topic, partition, key)`
      await client.query(text, keysOf(partitions))
    },

    async committed(partitions: TopicPartition[]): Promise<Position[]> {
      const text = `select topic, partition, next_offset as next from ${schema}.group_offsets
        join unnest($2::text[], $3::int[]) as w(topic, partition) using (topic, partition) where group_name = $1`
      const values = [group, partitions.map((p) => p.topic), partitions.map((p) => p.partition)]
      const rows = offsetRow.parse((await client.query(text, values)).rows)
      return rows.map(({ topic, partition, next }) => ({ topic, partition, offset: next }))
    },

    async commit(positions: Position[]): Promise<void> {
      const text = `insert into ${schema}.group_offsets (group_name, topic, partition, next_offset)
        select $1, * from unnest($2::text[], $3::int[], $4::bigint[])
        on conflict (group_name, topic, partition) do update set next_offset = excluded.next_offset`
      await client.query(text, [group, ...columns(positions)])
    },

    /** The next records of each of the positions' partitions, one query for all. */
    async read(positions: Position[], limits: { records: number; bytes: number }): Promise<LogRecord[]> {
      const values = [...columns(positions), limits.records, limits.bytes]
      return (
        await client.query<RecordRow>({ name: `${schema}.read`, text: readText(schema), values })
      ).rows.map(toRecord)
    },

    async close(): Promise<void> {
      client.off('end', options.onLost)
      await client.query('select pg_advisory_unlock_all()').catch(() => {})
      await client.end()
    },

    /** Ends the connection without waiting for the server, which may not answer any more. */
    async abandon(): Promise<void> {
      client.off('end', options.onLost)
      await client.end()
    },
  }
}

export type GroupSession = Awaited<ReturnType<typeof openGroupSession>>

async function connect(url: string): Promise<pg.Client> {
  const config = connectionConfig({
    url,
    applicationName: 'tidegate consumer',
    queryTimeoutMs: 10_000,
    // A committed offset may be lost in a crash of Postgres: records then come again.
    settings: { synchronous_commit: 'off' },
  })
  const client = new pg.Client(config)
  client.on('error', () => {})
  await client.connect()
  return client
}

const columns = (positions: Position[]) => [
  positions.map((p) => p.topic),
  positions.map((p) => p.partition),
  positions.map((p) => p.offset),
]

const readText = (schema: string) => `
select r.topic, r.partition, r."offset", r.key, r.headers, r.value, r.stored_at
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
  value: Buffer
  stored_at: string
}

const toRecord = ({ offset, stored_at, ...row }: RecordRow): LogRecord => ({
  ...row,
  offset: Number(offset),
  timestamp: Number(stored_at),
})

export interface TopicPartition {
  topic: Topic
  partition: number
}

/**
 * The partitions of a topic that are assigned to one member of its group. Every member computes the same
 * assignment from the same list, so there is no leader.
 */
export function assignPartitions(partitions: number, members: number[], me: number): number[] {
  const order = [...new Set(members)].sort((a, b) => a - b)
  const place = order.indexOf(me)
  if (place < 0) return []
  return Array.from({ length: partitions }, (_, i) => i).filter((i) => i % order.length === place)
}
