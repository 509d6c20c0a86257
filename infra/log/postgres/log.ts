import type pg from 'pg'
import type { Logger } from 'pino'
import { z } from 'zod'
import { createPool } from '../../postgres/pool.ts'
import { within } from '../../timing.ts'
import { createGroupCommit, type PlacedRecord } from '../group-commit.ts'
import { partitionOfKey } from '../partition.ts'
import { type EventLog, type LogConsumer, LogUnavailable, type NewRecord, type Position } from '../port.ts'
import { startConsumer } from './consumer.ts'
import { deleteExpired } from './retention.ts'
import { createLogSchema } from './schema.ts'
import { createTopics } from './topics.ts'
import { createWakeUps } from './wake-ups.ts'
import { writeBatch, writeTimeoutMs } from './write.ts'

export interface PostgresLogOptions {
  /** For everything but appending and consuming, which have connections of their own. */
  pool: pg.Pool
  url: string
  logger: Logger
  /** Postgres schema of the log's tables; default `tidegate_log`. */
  schema?: string
}

/** Batches of different lanes are written at the same time; a partition always has the same lane. */
const lanes = 2
const timeoutMs = 5000
const retentionEveryMs = 60_000
const endRows = z.array(z.object({ partition: z.number(), next: z.coerce.number() }))

/** The embedded event log, in tables of a Postgres database. Several processes may use it at once. */
export async function openPostgresLog(options: PostgresLogOptions): Promise<EventLog> {
  const { pool, url, logger, schema = 'tidegate_log' } = options
  await createLogSchema(pool, schema)
  const topics = createTopics(pool, schema)
  const wakeUps = createWakeUps({ pool, url, schema, logger })
  const writer = openWriter({ url, schema, onWritten: wakeUps.appended })
  const consumers = new Set<LogConsumer>()
  const retention = startRetention(options, schema)
  let closing: Promise<void> | undefined

  return {
    async append(records) {
      // No await where all topics are known: appends made one after the other must keep their order.
      for (const { topic } of records) if (!topics.known(topic)) await topics.find(topic)
      return writer.append(records.map((record) => place(record, topics.known(record.topic)?.partitions)))
    },

    async consume(consumeOptions) {
      const { group, topics: names } = consumeOptions
      const infos = await Promise.all(names.map((name) => topics.find(name)))
      await wakeUps.ready().catch(unavailable)
      const announce = () => wakeUps.membersChanged(group)
      const deps = { url, schema, topics: infos, announce }
      const consumer = await startConsumer(deps, consumeOptions).catch(unavailable)
      const sleeper = { group, topics: names, consumer }
      wakeUps.add(sleeper)
      consumer.rebalance()
      const registered = {
        async stop() {
          wakeUps.remove(sleeper)
          consumers.delete(registered)
          await consumer.stop()
        },
      }
      consumers.add(registered)
      return registered
    },

    async endPositions(topic) {
      const text = `select partition, next_offset as next from ${schema}.partitions where topic = $1 order by 1`
      const { rows } = await within(pool.query(text, [topic]), timeoutMs).catch(unavailable)
      return endRows.parse(rows).map(({ partition, next }) => ({ topic, partition, offset: next }))
    },

    partitionOf: async (topic, key) => partitionOfKey(key, (await topics.find(topic)).partitions),

    async ensureTopics(specs) {
      for (const spec of specs) await within(topics.ensure(spec), timeoutMs).catch(unavailable)
    },

    async check() {
      const text = `select pg_is_in_recovery() as read_only from ${schema}.topics limit 1`
      const { rows } = await within(pool.query(text), timeoutMs).catch(unavailable)
      if (rows[0]?.read_only) throw new LogUnavailable('the log is read-only')
    },

    close: () => {
      closing ??= close()
      return closing
    },
  }

  async function close(): Promise<void> {
    clearInterval(retention)
    await Promise.all([...consumers].map((consumer) => consumer.stop()))
    await writer.close()
    await wakeUps.close()
  }
}

const place = (record: NewRecord, partitions = 1): PlacedRecord => ({
  ...record,
  partition: partitionOfKey(record.key, partitions),
})

function unavailable(cause: unknown): never {
  throw cause instanceof LogUnavailable
    ? cause
    : new LogUnavailable('the log could not be reached', { cause })
}

interface WriterOptions {
  url: string
  schema: string
  onWritten: (topic: string) => void
}

function openWriter({ url, schema, onWritten }: WriterOptions) {
  const pool = createPool({
    url,
    max: lanes,
    applicationName: 'tidegate log',
    statementTimeoutMs: writeTimeoutMs,
    // Longer than a caller waits: the server's answer tells what became of the write.
    queryTimeoutMs: 2 * timeoutMs,
  })

  async function write(records: PlacedRecord[]): Promise<Position[]> {
    const writing = writeBatch(pool, schema, records)
    const positions = await within(writing, timeoutMs).catch((cause) => {
      if (cause instanceof LogUnavailable) throw cause
      throw new LogUnavailable('the log did not confirm in time', { cause, settled: fateOf(writing) })
    })
    for (const topic of new Set(positions.map((position) => position.topic))) onWritten(topic)
    return positions
  }

  const commits = Array.from({ length: lanes }, () =>
    createGroupCommit({ write, maxRecords: 2000, maxBytes: 4 * 1024 * 1024 }),
  )

  return {
    async append(records: PlacedRecord[]): Promise<Position[]> {
      const parts = commits.map((commit, lane) => {
        const mine = records.filter((record) => record.partition % lanes === lane)
        return mine.length > 0 ? commit.append(mine) : []
      })
      // Also when one fails the others are waited for: what is under way has no end of its own then.
      const positions = allOrFailure(await Promise.allSettled(parts)).map((some) => some.values())
      return records.map((record) => positions[record.partition % lanes]?.next().value ?? missing())
    },
    async close(): Promise<void> {
      await Promise.all(commits.map((commit) => commit.idle()))
      await pool.end()
    },
  }
}

async function fateOf(writing: Promise<unknown>): Promise<void> {
  await writing.catch((error) => (error instanceof LogUnavailable ? error.settled : undefined))
}

function allOrFailure<T>(results: PromiseSettledResult<T>[]): T[] {
  const reasons = results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []))
  if (reasons.length === 0)
    return results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
  throw reasons.find((reason) => reason instanceof LogUnavailable && reason.settled) ?? reasons[0]
}

function missing(): never {
  throw new LogUnavailable('the log gave too few positions')
}

function startRetention({ pool, logger }: PostgresLogOptions, schema: string): NodeJS.Timeout {
  const run = () =>
    deleteExpired(pool, schema).catch((error) =>
      logger.warn({ err: error }, 'deleting expired records failed'),
    )
  return setInterval(run, retentionEveryMs).unref()
}
