import { pino } from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type EventLog, LogUnavailable } from '../../../infra/log/port.ts'
import { deleteExpiredRecords, openPostgresLog } from '../../../infra/log/postgres/log.ts'
import { transaction } from '../../../infra/postgres/pool.ts'
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
}, 40_000)

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
  const { rows } = await pool.query('select topic, "offset"::int from tidegate_log.records order by 1')
  expect(rows).toEqual([
    { topic: 'days', offset: 2 },
    { topic: 'forever', offset: 0 },
  ])
  const [position] = await log.append([record('days')])
  expect(position?.offset).toBe(3)
  await log.close()
  await drop()
})
