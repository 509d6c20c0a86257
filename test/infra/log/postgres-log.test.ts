import { pino } from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type EventLog, LogUnavailable } from '../../../infra/log/port.ts'
import { deleteExpiredRecords, openPostgresLog } from '../../../infra/log/postgres/log.ts'
import { openListener } from '../../../infra/postgres/listen.ts'
import { transaction } from '../../../infra/postgres/pool.ts'
import { eachBatch } from '../../support/each-batch.ts'
import { createTestDatabase, type TestDatabase } from '../../support/postgres.ts'
import { startTcpProxy } from '../../support/tcp-proxy.ts'

const logger = pino({ level: 'silent' })
const topic = 'fates'
const record = { topic, key: 'k', value: Buffer.from('v'), headers: {} }
let database: TestDatabase
let log: EventLog
beforeAll(async () => {
  database = await createTestDatabase()
  log = await openPostgresLog({ ...database, logger })
  await log.ensureTopics([{ topic, partitions: 1 }])
})
afterAll(async () => {
  await log.close()
  await database.drop()
})

const nextOffset = async () => (await log.endPositions(topic))[0]?.offset

test('starting again takes no number for a topic that exists', async () => {
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

test('a write that the server holds up too long fails for good: it is not written afterwards', async () => {
  const failure = await transaction(database.pool, async (tx) => {
    await tx.query('select from tidegate_log.partitions for update')
    return log.append([record]).catch((error) => error)
  })
  expect(failure).toBeInstanceOf(LogUnavailable)
  expect(failure).toMatchObject({ settled: undefined })
  expect(await log.append([record])).toEqual([{ topic, partition: 0, offset: 0 }])
})

test('a write whose answer was lost says that its fate is open, and when it is not any more', async () => {
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

test('deletes what is older than its topic keeps, and nothing else; offsets go on', async () => {
  const { pool, url, drop } = await createTestDatabase()
  const log = await openPostgresLog({ pool, url, logger: pino({ level: 'silent' }) })
  const record = (topic: string) => ({ topic, key: 'a', value: Buffer.from('x'), headers: {} })
  await log.ensureTopics([
    { topic: 'days', partitions: 1, retentionMs: 60_000 },
    { topic: 'forever', partitions: 1 },
  ])
  await log.append(['days', 'days', 'forever'].map(record))
  await pool.query('update tidegate_log.records set stored_at = stored_at - 120000')
  await log.append([record('days')])
  expect(await deleteExpiredRecords(pool, 'tidegate_log')).toBe(2)
  const { rows } = await pool.query(
    'select topic, "offset"::int from tidegate_log.records order by 1',
  )
  expect(rows).toEqual([
    { topic: 'days', offset: 2 },
    { topic: 'forever', offset: 0 },
  ])
  const [position] = await log.append([record('days')])
  expect(position?.offset).toBe(3)
  await log.close()
  await drop()
})

test('tells other processes of new records only where one consumes', async () => {
  const heard: string[] = []
  const onNotification = (_: string, payload: string) => heard.push(payload)
  const channels = ['tidegate_log_wake']
  const listener = await openListener({ url: database.url, channels, onNotification, logger })
  const alone = await openPostgresLog({ ...database, logger })
  // What it does before it knows is to tell.
  await alone.append([record])
  await expect.poll(() => heard.length).toBeGreaterThan(0)
  const other = await openPostgresLog({ ...database, logger })
  const values: string[] = []
  const consumer = await other.consume({
    group: 'others',
    topics: [topic],
    handle: eachBatch(({ records }) => values.push(...records.map(({ key }) => key))),
  })
  await alone.append([{ ...record, key: 'from another' }])
  await expect.poll(() => values).toContain('from another')
  await consumer.stop()
  await other.close()
  // It asks once a second at most.
  await expect
    .poll(
      async () => {
        const before = heard.length
        await alone.append([record])
        await database.pool.query("select pg_notify('tidegate_log_wake', 'marker')")
        await expect.poll(() => heard.slice(before)).toContain('marker')
        return heard.length - before
      },
      { timeout: 10_000, interval: 300 },
    )
    .toBe(1)
  await alone.close()
  await listener.close()
})

test('a group goes on past records that expired before it read them', async () => {
  const { pool, url, drop } = await createTestDatabase()
  const writer = await openPostgresLog({ pool, url, logger })
  const reader = await openPostgresLog({ pool, url, logger })
  const one = (value: string) => ({
    topic: 'days',
    key: 'a',
    value: Buffer.from(value),
    headers: {},
  })
  await writer.ensureTopics([{ topic: 'days', partitions: 1, retentionMs: 60_000 }])
  const values: string[] = []
  const consumer = await reader.consume({
    group: 'late',
    topics: ['days'],
    handle: eachBatch(({ records }) => values.push(...records.map(({ value }) => String(value)))),
  })
  await transaction(pool, async (tx) => {
    await tx.query(
      `update tidegate_log.partitions set next_offset = next_offset + 5 where topic = 'days'`,
    )
  })
  await writer.append([one('first')])
  await expect.poll(() => values).toEqual(['first'])
  await writer.append([one('second')])
  await expect.poll(() => values).toEqual(['first', 'second'])
  await consumer.stop()
  await Promise.all([writer.close(), reader.close()])
  await drop()
})
