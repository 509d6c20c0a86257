import { pino } from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { compareTopic } from '../../../infra/log/copy/compare-topic.ts'
import type { EventLog, ReceivingLog } from '../../../infra/log/port.ts'
import { openPostgresLog } from '../../../infra/log/postgres/log.ts'
import { createTestDatabase, type TestDatabase } from '../../support/postgres.ts'

const topic = 'compared'
const databases: TestDatabase[] = []
const logs: EventLog[] = []

/** A log of its own with these values, all stored at one time. No Kafka is needed, as nothing is written by `carry`. */
async function logWith(values: string[]): Promise<ReceivingLog> {
  const database = await createTestDatabase()
  databases.push(database)
  const options = {
    pool: database.pool,
    url: database.url,
    logger: pino({ level: 'silent' }),
    keepsExpired: true,
  }
  const writer = await openPostgresLog(options)
  await writer.ensureTopics([{ topic, partitions: 3 }])
  const records = values.map((value, i) => ({
    topic,
    key: `key ${i % 2}`,
    value: Buffer.from(value),
    headers: {},
  }))
  await writer.append(records)
  await writer.close()
  await database.pool.query('update tidegate_log.records set stored_at = 1 where topic = $1', [
    topic,
  ])
  const log = await openPostgresLog(options)
  logs.push(log)
  const unused = () => Promise.reject(new Error('nothing is written'))
  return { ...log, carry: unused, commit: unused }
}

const values = Array.from({ length: 30 }, (_, i) => `value ${i}`)
let source: ReceivingLog
beforeAll(async () => {
  source = await logWith(values)
}, 60_000)
afterAll(async () => {
  await Promise.all(logs.map((log) => log.close()))
  await Promise.all(databases.map((database) => database.drop()))
})

const compare = async (target: ReceivingLog) =>
  compareTopic({ source, target, topic, expires: false, ends: await source.endPositions(topic) })

test('given a copy, when the two are compared, then all its records are counted', async () => {
  expect(await compare(await logWith(values))).toBe(30)
})

test.each([
  ['lacks the last records', values.slice(0, 20)],
  ['has none', []],
  ['has another value', values.with(7, 'other')],
])('given a log that %s, when the two are compared, then they differ', async (_, other) => {
  await expect(compare(await logWith(other))).rejects.toThrow(
    /differs: \d+ records in the embedded log, \d+ on Kafka/,
  )
})
