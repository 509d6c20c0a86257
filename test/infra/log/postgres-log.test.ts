import { randomUUID } from 'node:crypto'
import type { Pool } from 'pg'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type EventLog, type LogRecord, LogUnavailable } from '../../../infra/log/port.ts'
import { createConsumerConnection } from '../../../infra/log/postgres/consumer-connection.ts'
import { deleteExpiredRecords, openPostgresLog } from '../../../infra/log/postgres/log.ts'
import { openListener } from '../../../infra/postgres/listen.ts'
import { transaction } from '../../../infra/postgres/pool.ts'
import { eachBatch } from '../../support/each-batch.ts'
import { createTestDatabase } from '../../support/postgres.ts'
import { startTcpProxy } from '../../support/tcp-proxy.ts'
import { keysOfTwoPartitions } from './contract.ts'

const logger = pino({ level: 'silent' })
const topic = 'fates'
const record = { topic, key: 'k', value: Buffer.from('v'), headers: {} }
const database = await createTestDatabase()
const log = await openPostgresLog({ ...database, logger })
await log.ensureTopics([{ topic, partitions: 1 }])
afterAll(async () => {
  await log.close()
  await database.drop()
})

/** Creates a separate database, and opens logs on it. */
async function createInstallation() {
  const { pool, url, drop } = await createTestDatabase()
  const logs: EventLog[] = []
  return {
    pool,
    url,
    async open() {
      const opened = await openPostgresLog({ pool, url, logger })
      logs.push(opened)
      return opened
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(logs.map((one) => one.close()))
      await drop()
    },
  }
}

const nextOffset = async () => (await log.endPositions(topic))[0]?.offset

test('ensureTopics uses no id for an existing topic', async () => {
  for (let start = 0; start < 10; start++) {
    await log.ensureTopics([{ topic, partitions: 1, retentionMs: 1000 + start }])
  }
  await log.ensureTopics([{ topic: 'another', partitions: 1 }])
  const { rows } = await database.pool.query(
    'select topic, id, retention_ms from tidegate_log.topics order by id',
  )
  expect(rows).toEqual([
    { topic, id: 1, retention_ms: '1009' },
    { topic: 'another', id: 2, retention_ms: null },
  ])
})

test('a write that fails by its statement timeout is certainly not written', async () => {
  const failure = await transaction(database.pool, async (tx) => {
    await tx.query('select from tidegate_log.partitions for update')
    return log.append([record]).catch((error) => error)
  })
  expect(failure).toBeInstanceOf(LogUnavailable)
  expect(failure).toMatchObject({ settled: undefined })
  expect(await log.append([record])).toEqual([{ topic, partition: 0, offset: 0 }])
})

test('a write without a response rejects with a promise that settles once its outcome is known', async () => {
  const proxy = await startTcpProxy(database.url)
  const remote = await openPostgresLog({ pool: database.pool, url: proxy.url, logger })
  await remote.append([record])
  const before = await nextOffset()
  await transaction(database.pool, async (tx) => {
    await tx.query('select from tidegate_log.partitions for update')
    const appending = remote.append([record]).catch((error) => error)
    await expect.poll(waitingWrites).toBe(1)
    proxy.freeze()
    await tx.query('commit')
    const failure = await appending
    expect(failure).toMatchObject({ name: 'LogUnavailable', settled: expect.any(Promise) })
    await failure.settled
  })
  expect(await nextOffset()).toBe((before ?? 0) + 1)
  await remote.close()
  await proxy.close()
})

async function waitingWrites(): Promise<number> {
  const { rows } = await database.pool.query(
    `select count(*)::int from pg_stat_activity
     where datname = current_database() and wait_event_type = 'Lock' and query like '%append%'`,
  )
  return rows[0].count
}

test('deletes only expired records, and offsets continue', async () => {
  await using own = await createInstallation()
  const { pool } = own
  const log = await own.open()
  const recordOf = (topic: string) => ({ ...record, topic })
  await log.ensureTopics([
    { topic: 'days', partitions: 1, retentionMs: 60_000 },
    { topic: 'forever', partitions: 1 },
  ])
  await log.append(['days', 'days', 'forever'].map(recordOf))
  await pool.query('update tidegate_log.records set stored_at = stored_at - 120000')
  await log.append([recordOf('days')])
  expect(await deleteExpiredRecords(pool, 'tidegate_log')).toBe(2)
  const { rows } = await pool.query(
    'select topic, "offset"::int from tidegate_log.records order by 1',
  )
  expect(rows).toEqual([
    { topic: 'days', offset: 2 },
    { topic: 'forever', offset: 0 },
  ])
  const [position] = await log.append([recordOf('days')])
  expect(position?.offset).toBe(3)
})

test('notifies other processes of new records only while one is listening', async () => {
  await using own = await createInstallation()
  const received: string[] = []
  const onNotification = (_: string, payload: string) => received.push(payload)
  const channels = ['tidegate_log_wake']
  const listener = await openListener({ url: own.url, channels, onNotification, logger })
  const openConsuming = async (values: string[]) => {
    const log = await own.open()
    await log.ensureTopics([{ topic, partitions: 1 }])
    const handle = eachBatch(({ records }) => values.push(...records.map(({ key }) => key)))
    await log.consume({ group: randomUUID(), topics: [topic], handle })
    return log
  }
  const isNotified = () => received.some((payload) => payload.includes(topic))
  const values: string[] = []
  const alone = await openConsuming([])
  // At first it assumes that others are listening. Notifications of appends are sent with its next heartbeat.
  const isSilent = async () => {
    received.length = 0
    await alone.append([record])
    await expect.poll(() => received.length, { timeout: 5000 }).toBeGreaterThan(1)
    return !isNotified()
  }
  await expect.poll(isSilent, { timeout: 20_000 }).toBe(true)
  await openConsuming(values)
  const isNotifiedOfAppend = async () => {
    await alone.append([{ ...record, key: 'from another' }])
    return isNotified()
  }
  await expect.poll(isNotifiedOfAppend, { timeout: 5000 }).toBe(true)
  await expect.poll(() => values).toContain('from another')
  await listener.close()
}, 30_000)

test('a group finds records without a notification', async () => {
  const values: string[] = []
  const handle = eachBatch(({ records }) => values.push(...records.map(({ key }) => key)))
  const consumer = await log.consume({ group: 'unnotified', topics: [topic], handle })
  await log.append([{ ...record, key: 'notified' }])
  await expect.poll(() => values).toContain('notified')
  await database.pool.query(
    `select tidegate_log.append_records('{${topic}}', '{0}', '{1}', '{1}', '{0}', '{silent}', '{"{}"}', '{v}')`,
  )
  await expect.poll(() => values, { timeout: 5000 }).toContain('silent')
  await consumer.stop()
})

test.for([0, 1])('partition %i with a backlog does not block the other', async (first) => {
  const behind = `behind ${first}`
  await log.ensureTopics([{ topic: behind, partitions: 2 }])
  const keys = await keysOfTwoPartitions(log, behind)
  const isFirst = (await log.partitionOf(behind, keys[0])) === first
  const [much, little] = isFirst ? keys : [keys[1], keys[0]]
  const appendOne = (key: string) => log.append([{ ...record, topic: behind, key }])
  await log.append(Array.from({ length: 1000 }, () => ({ ...record, topic: behind, key: much })))
  const calls: string[][] = []
  const consumer = await log.consume({
    group: behind,
    topics: [behind],
    maxRecords: 10,
    async handle(batches) {
      calls.push(batches.flatMap(({ records }) => records.map(({ key }) => key)))
      if (calls.length === 3) await appendOne(little)
      return undefined
    },
  })
  await expect.poll(() => calls.flat().length).toBe(1001)
  expect(calls.findIndex((keys) => keys.includes(little))).toBe(3)
  await consumer.stop()
})

describe('a read', () => {
  const read = 'read'
  const openConnection = () =>
    createConsumerConnection({
      url: database.url,
      schema: 'tidegate_log',
      isReadOnly: false,
      onLost() {},
    })
  beforeAll(async () => {
    await log.ensureTopics([{ topic: read, partitions: 2 }])
    const [key, other] = await keysOfTwoPartitions(log, read)
    const keys = [key, key, key, other]
    await log.append(keys.map((key) => ({ ...record, topic: read, key, value: Buffer.alloc(100) })))
  })

  test.for([
    { limits: { records: 1000, bytes: 1000 }, counts: [1, 3] },
    { limits: { records: 2, bytes: 1000 }, counts: [1, 2] },
    { limits: { records: 1000, bytes: 150 }, counts: [1, 2] },
    { limits: { records: 1000, bytes: 1 }, counts: [1, 1] },
  ])(
    'returns at most $limits for each position, but at least one record',
    async ({ limits, counts }) => {
      const reading = openConnection()
      const from = await log.firstPositions(read)
      const found = await reading.read(from.map((at) => ({ ...at, ...limits })))
      expect(found.map((records) => records.length).sort()).toEqual(counts)
      await reading.close()
    },
  )

  test('is shared by groups at the same position', async () => {
    const reading = openConnection()
    const positions = await log.firstPositions(read)
    const from = positions.map((at) => ({ ...at, records: 10, bytes: 1000 }))
    const [all, same, last] = await Promise.all([
      reading.read(from),
      reading.read(from),
      reading.read(from.map((at) => ({ ...at, offset: at.offset + 1 }))),
    ])
    const places = (found: LogRecord[][]) =>
      found.map((records) => records.map(({ partition, offset }) => `${partition}/${offset}`))
    expect(all.flat()).toHaveLength(4)
    for (const [i, one] of same.flat().entries()) expect(one).toBe(all.flat()[i])
    expect(places(last)).toEqual(places(all).map((some) => some.slice(1)))
    await reading.close()
  })
})

test.each(['have little', 'may have some'])(
  'a partition with a backlog gets the whole read while others %s',
  async (others) => {
    await using own = await createInstallation()
    const log = await own.open()
    const recordOf = (key: string) => ({ ...record, topic: 'skewed', key })
    await log.ensureTopics([{ topic: 'skewed', partitions: 4 }])
    const [key, otherKey] = await keysOfTwoPartitions(log, 'skewed')
    const behind = await log.partitionOf('skewed', key)
    await log.append(Array.from({ length: 1000 }, () => recordOf(key)))
    const meanwhile = {
      'have little': () => log.append([recordOf(otherKey)]),
      'may have some': () => wakeFromOutside(own, 'skewed'),
    }[others]
    const sizes: number[] = []
    const { promise: allRead, resolve } = Promise.withResolvers<void>()
    const consumer = await log.consume({
      group: 'skewed',
      topics: ['skewed'],
      maxRecords: 100,
      async handle(batches) {
        const records = batches.find(({ partition }) => partition === behind)?.records ?? []
        sizes.push(records.length)
        if ((records.at(-1)?.offset ?? 0) === 999) resolve()
        else await meanwhile?.()
        return []
      },
    })
    await allRead
    // The first read is split equally, because nothing is known yet. Later batches include records of the others.
    expect(sizes[0]).toBe(25)
    expect(sizes[1]).toBeGreaterThan(90)
    expect(sizes.length).toBeLessThan(13)
    await consumer.stop()
  },
)

/** Sends a notification as another process would. Resolves once a listener has received it. */
async function wakeFromOutside({ pool, url }: { pool: Pool; url: string }, topic: string) {
  const received = Promise.withResolvers<void>()
  const channels = ['tidegate_log_wake']
  const onNotification = () => received.resolve()
  const listener = await openListener({ url, channels, onNotification, logger })
  await pool.query('select pg_notify($1, $2)', ['tidegate_log_wake', `another ${topic}`])
  await received.promise
  await listener.close()
}

test('a group gets records of its own process and of others, each once and in order', async () => {
  await using installation = await createInstallation()
  const [own, other] = [await installation.open(), await installation.open()]
  await own.ensureTopics([{ topic: 'shared', partitions: 2 }])
  const got = new Map<number, number[]>()
  let count = 0
  const { promise: all, resolve } = Promise.withResolvers<void>()
  const consumer = await own.consume({
    group: 'shared',
    topics: ['shared'],
    maxRecords: 7,
    async handle(batches) {
      for (const { partition, records } of batches) {
        got.set(partition, [...(got.get(partition) ?? []), ...records.map(({ offset }) => offset)])
        count += records.length
      }
      if (count >= 400) resolve()
      return []
    },
  })
  const writers = [own, own, own, other].map(async (log) => {
    for (let i = 0; i < 100; i++) await log.append([{ ...record, topic: 'shared', key: `k${i}` }])
  })
  await Promise.all([...writers, all])
  const ends = await own.endPositions('shared')
  for (const { partition, offset } of ends)
    expect(got.get(partition)).toEqual(Array.from({ length: offset }, (_, i) => i))
  await consumer.stop()
})

test('a group continues after records that expired before it read them', async () => {
  await using own = await createInstallation()
  const [writer, reader] = [await own.open(), await own.open()]
  const one = (value: string) => ({ ...record, topic: 'days', value: Buffer.from(value) })
  await writer.ensureTopics([{ topic: 'days', partitions: 1, retentionMs: 60_000 }])
  const values: string[] = []
  const consumer = await reader.consume({
    group: 'late',
    topics: ['days'],
    handle: eachBatch(({ records }) => values.push(...records.map(({ value }) => String(value)))),
  })
  await own.pool.query(
    `update tidegate_log.partitions set next_offset = next_offset + 5 where topic = 'days'`,
  )
  await writer.append([one('first')])
  await expect.poll(() => values).toEqual(['first'])
  await writer.append([one('second')])
  await expect.poll(() => values).toEqual(['first', 'second'])
  await consumer.stop()
})
