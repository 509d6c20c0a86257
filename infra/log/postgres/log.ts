import type pg from 'pg'
import type { Logger } from 'pino'
import { z } from 'zod'
import type { Cte } from '../../postgres/arrays.ts'
import { withTimeout } from '../../timing.ts'
import { assignPartition, type PartitionedRecord, partitionOfKey } from '../partition.ts'
import {
  type EventLog,
  type KeyedRecord,
  type LogConsumer,
  LogUnavailable,
  type Position,
  type Topic,
} from '../port.ts'
import { startGroupConsumer } from './consumer.ts'
import { createConsumerConnection } from './consumer-connection.ts'
import { createConsumerWaker } from './consumer-waker.ts'
import { createLogSchema, createTopicCache, type TopicInfo } from './tables.ts'
import { openWriter, writerConnections } from './writer.ts'

export interface PostgresLogOptions<Guard = never> {
  /** Used for everything except appending and consuming, which have connections of their own. */
  pool: pg.Pool
  url: string
  logger: Logger
  schema?: string
  /** Returns statements to run atomically with an append of these records. */
  extraWrites?: (records: PartitionedRecord[]) => Cte[]
  /** Returns the statements of `appendIf`. If the last one, named `refused`, returns a row, nothing is written. */
  guardWrites?: (guards: Guard[]) => Cte[]
  /** Keeps expired records. Default: they are deleted while the log is open. */
  keepsExpired?: boolean
  /** Opens an existing log: nothing is created or deleted, and Postgres refuses every write. */
  isReadOnly?: boolean
}

/** Connections besides those of the pool: the writer's, and two of a consuming process (consumer and listener). */
export const embeddedLogConnections = { writers: writerConnections, consumers: 2 }

const timeoutMs = 5000
const retentionEveryMs = 60_000
const identityRows = z.tuple([z.object({ id: z.string() })])
const offsetRows = z.array(z.object({ partition: z.number(), offset: z.coerce.number() }))

export async function openPostgresLog<Guard = never>(
  options: PostgresLogOptions<Guard>,
): Promise<EventLog<Guard>> {
  const {
    pool,
    url,
    logger,
    schema = 'tidegate_log',
    extraWrites,
    guardWrites,
    isReadOnly = false,
  } = options
  const { keepsExpired = isReadOnly } = options
  if (!isReadOnly) await createLogSchema(pool, schema)
  const topics = createTopicCache(pool, schema)
  const waker = createConsumerWaker({ pool, url, schema, logger })
  const connection = createConsumerConnection({ url, schema, isReadOnly, onLost: waker.wakeAll })
  const writer = openWriter({ url, schema, onWritten: waker.announce, extraWrites, guardWrites })
  const consumers = new Set<LogConsumer>()
  const retention = keepsExpired ? undefined : startRetention(options, schema)
  let closing: Promise<void> | undefined

  return {
    async append(records) {
      // Doesn't await if all topics are cached, so that consecutive appends keep their order.
      for (const { topic } of records) if (!topics.getCached(topic)) await topics.find(topic)
      return writer.append(records.map(withPartition))
    },

    ...(guardWrites && {
      async appendIf(record, guard) {
        if (!topics.getCached(record.topic)) await topics.find(record.topic)
        return writer.appendIf(withPartition(record), guard)
      },
    }),

    async consume(consumeOptions) {
      const { topics: names } = consumeOptions
      const infos = await Promise.all(names.map((name) => topics.find(name)))
      await waker.open().catch(rethrow)
      const partitions = infos.flatMap(partitionsOf)
      const consumer = startGroupConsumer({ connection, partitions }, consumeOptions)
      waker.add(consumer)
      const tracked = {
        async stop() {
          await consumer.stop()
          waker.remove(consumer)
          consumers.delete(tracked)
        },
      }
      consumers.add(tracked)
      return tracked
    },

    ...positionQueries(pool, schema),

    async identity() {
      const rows = await queryLog(pool, `select id from ${schema}.identity`)
      return `embedded log ${identityRows.parse(rows)[0].id}`
    },

    partitionOf: async (topic, key) => partitionOfKey(key, (await topics.find(topic)).partitions),

    async ensureTopics(specs) {
      for (const spec of specs) await withTimeout(topics.ensure(spec), timeoutMs).catch(rethrow)
    },

    warnings: async () => [],

    async check() {
      const text = `select pg_is_in_recovery() as read_only from ${schema}.topics limit 1`
      const [row] = await queryLog<{ read_only: boolean }>(pool, text)
      if (row?.read_only) throw new LogUnavailable('the log is read-only')
    },

    close: () => {
      closing ??= close()
      return closing
    },
  }

  function withPartition({ value, ...record }: KeyedRecord): PartitionedRecord {
    if (value === null) throw new Error('the embedded log has no compacted topics')
    return assignPartition({ ...record, value }, topics.getCached(record.topic)?.partitions)
  }

  async function close(): Promise<void> {
    clearInterval(retention)
    await Promise.all([...consumers].map((consumer) => consumer.stop()))
    await writer.close()
    await waker.close()
    await connection.close()
  }
}

async function queryLog<Row extends pg.QueryResultRow>(
  pool: pg.Pool,
  text: string,
  values: unknown[] = [],
): Promise<Row[]> {
  const { rows } = await withTimeout(pool.query<Row>(text, values), timeoutMs).catch(rethrow)
  return rows
}

function positionQueries(
  pool: pg.Pool,
  schema: string,
): Pick<EventLog, 'firstPositions' | 'endPositions' | 'positionsSince' | 'committedPositions'> {
  async function positionsIn(topic: Topic, offset: string): Promise<Position[]> {
    const text = `select partition, ${offset} as "offset" from ${schema}.partitions p where topic = $1 order by 1`
    return offsetRows.parse(await queryLog(pool, text, [topic])).map((row) => ({ topic, ...row }))
  }

  return {
    firstPositions: (topic) => positionsIn(topic, firstOffsetSql(schema)),
    endPositions: (topic) => positionsIn(topic, 'next_offset'),
    async positionsSince(topic, time) {
      const rows = await queryLog(pool, positionsSinceSql(schema), [topic, time])
      return offsetRows.parse(rows).map((row) => ({ topic, ...row }))
    },
    committedPositions(group, names) {
      const text = `select topic, partition, next_offset::float8 as "offset" from ${schema}.group_offsets
        where group_name = $1 and topic = any($2)`
      return queryLog<Position>(pool, text, [group, names])
    },
  }
}

const firstOffsetSql = (schema: string) => `coalesce((select min("offset") from ${schema}.records r
  where r.topic = p.topic and r.partition = p.partition), next_offset)`

// Binary search in each partition, because there is no index on the time.
const positionsSinceSql = (schema: string) => `with recursive searched (partition, low, high) as (
    select partition, ${firstOffsetSql(schema)}, next_offset from ${schema}.partitions p where topic = $1
    union all
    select partition, case when is_older then middle + 1 else low end, case when is_older then high else middle end
    from searched cross join lateral (select (low + high) / 2 as middle) half cross join lateral (
      select coalesce((select stored_at < $2 from ${schema}.records r
        where r.topic = $1 and r.partition = searched.partition and r."offset" >= middle
        order by r."offset" limit 1), false) as is_older
    ) probe where low < high
  ) select partition, low as "offset" from searched where low = high order by 1`

const partitionsOf = ({ topic, partitions }: TopicInfo) =>
  Array.from({ length: partitions }, (_, partition) => ({ topic, partition }))

// Rethrows any error as LogUnavailable.
function rethrow(cause: unknown): never {
  throw cause instanceof LogUnavailable
    ? cause
    : new LogUnavailable('cannot reach the log', { cause })
}

function startRetention(
  { pool, logger }: Pick<PostgresLogOptions, 'pool' | 'logger'>,
  schema: string,
): NodeJS.Timeout {
  const run = () =>
    deleteExpiredRecords(pool, schema).catch((error) =>
      logger.warn({ err: error }, 'failed to delete expired records'),
    )
  return setInterval(run, retentionEveryMs).unref()
}

const chunkSize = 5000

/** Deletes expired records, and returns their number. Several processes may run it at once. */
export async function deleteExpiredRecords(pool: pg.Pool, schema: string): Promise<number> {
  let total = 0
  for (;;) {
    const { rowCount } = await pool.query(
      `with old as (
         select r.topic, r.partition, r."offset" from ${schema}.topics t
         join ${schema}.partitions p using (topic)
         cross join lateral (
           select topic, partition, "offset", stored_at from ${schema}.records
           where topic = p.topic and partition = p.partition order by "offset" limit $1
         ) as r
         where t.retention_ms is not null
           and r.stored_at < extract(epoch from clock_timestamp()) * 1000 - t.retention_ms
       )
       delete from ${schema}.records r using old
       where r.topic = old.topic and r.partition = old.partition and r."offset" = old."offset"`,
      [chunkSize],
    )
    total += rowCount ?? 0
    if (!rowCount) return total
  }
}
