import { randomBytes } from 'node:crypto'
import { pino } from 'pino'
import { inject } from 'vitest'
import { createKafkaClient } from '../../infra/log/kafka/client.ts'
import { openKafkaLog } from '../../infra/log/kafka/log.ts'
import type { EventLog } from '../../infra/log/port.ts'
import { openPostgresLog } from '../../infra/log/postgres/log.ts'
import { kafkaIsUp } from './kafka.ts'
import { isLong } from './long.ts'
import { needs } from './needs.ts'
import { createTestDatabase, type TestDatabase } from './postgres.ts'

export interface TestLog {
  name: 'postgres' | 'kafka'
  /** Opens the log again, like another process, with the records appended before. */
  open(): Promise<EventLog>
  /** Closes all opened logs and deletes their data. */
  cleanup(): Promise<void>
}

const logger = pino({ level: 'silent' })

/** Returns the adapters to test, each with its own storage. `make test` uses only Postgres. */
export const openTestLogs = (): TestLog[] => (isLong ? openBothLogs() : [postgresTestLog()])

/** Returns both adapters, for tests of the log itself. Omits Kafka if it is not available. */
export function openBothLogs(): TestLog[] {
  const brokers = needs('kafka').areMet ? inject('kafkaBrokers') : null
  return brokers === null ? [postgresTestLog()] : [postgresTestLog(), kafkaTestLog(() => brokers)]
}

export function postgresTestLog(
  createDatabase: () => Promise<TestDatabase> = createTestDatabase,
): TestLog {
  const opened: EventLog[] = []
  let database: Promise<TestDatabase> | undefined
  return {
    name: 'postgres',
    async open() {
      database ??= createDatabase()
      const { pool, url } = await database
      const log = await openPostgresLog({ pool, url, logger })
      opened.push(log)
      return log
    },
    async cleanup() {
      await closeAll(opened)
      await (await database)?.drop()
      database = undefined
    },
  }
}

/** `addresses` returns brokers, which may start after this call. */
export function kafkaTestLog(addresses: () => string): TestLog {
  const opened: EventLog[] = []
  const newPrefix = () => `test-${randomBytes(6).toString('hex')}.`
  let topicPrefix = newPrefix()
  const brokers = () => addresses().split(',')
  return {
    name: 'kafka',
    async open() {
      await kafkaIsUp(addresses())
      const log = await openKafkaLog({ brokers: brokers(), topicPrefix, logger })
      opened.push(log)
      return log
    },
    async cleanup() {
      await closeAll(opened)
      await deleteTopics(brokers(), topicPrefix)
      // Brokers delete topics and groups with a delay.
      topicPrefix = newPrefix()
    },
  }
}

async function closeAll(logs: EventLog[]): Promise<void> {
  await Promise.all(logs.splice(0).map((log) => log.close()))
}

/** Deletes all records of the topic, as if they had expired. */
export async function deleteRecords(brokers: string[], topic: string): Promise<void> {
  const admin = createKafkaClient({ brokers, logger }).admin()
  await admin.connect()
  const ends = await admin.fetchTopicOffsets(topic)
  const partitions = ends
    .filter(({ high, low }) => high !== low)
    .map(({ partition, high }) => ({ partition, offset: high }))
  await admin.deleteTopicRecords({ topic, partitions })
  await admin.disconnect()
}

/** Deletes the topics whose names start with the prefix. */
export async function deleteTopics(brokers: string[], prefix: string): Promise<void> {
  const admin = createKafkaClient({ brokers, logger }).admin()
  await admin.connect()
  const topics = (await admin.listTopics()).filter((topic) => topic.startsWith(prefix))
  if (topics.length > 0) await admin.deleteTopics({ topics })
  await admin.disconnect()
}
