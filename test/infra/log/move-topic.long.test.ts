import { randomBytes } from 'node:crypto'
import { pino } from 'pino'
import { afterAll, beforeAll, expect } from 'vitest'
import { type KafkaImport, openKafkaImport } from '../../../infra/log/kafka/import.ts'
import { openKafkaLog } from '../../../infra/log/kafka/log.ts'
import { type Move, moveTopic, verifyMoved } from '../../../infra/log/move-topic.ts'
import type { EventLog, LogRecord } from '../../../infra/log/port.ts'
import { openPostgresLog } from '../../../infra/log/postgres/log.ts'
import { kafkaPlace } from '../../support/cluster.ts'
import { deleteTopics } from '../../support/logs.ts'
import { needs } from '../../support/needs.ts'
import { createTestDatabase, type TestDatabase } from '../../support/postgres.ts'
import { allRecords } from './all-records.ts'

const { describe, test } = needs('kafka')

const logger = pino({ level: 'silent' })
const day = 24 * 60 * 60 * 1000
const partitions = 3
const keepsOffsets = true

describe('a topic of the embedded log that moves to Kafka', { timeout: 60_000 }, () => {
  let database: TestDatabase
  let source: EventLog
  let target: EventLog
  let importing: KafkaImport
  let kafka: Awaited<ReturnType<typeof kafkaPlace>>

  beforeAll(async () => {
    database = await createTestDatabase()
    kafka = await kafkaPlace()
    const { pool, url } = database
    source = await openPostgresLog({ pool, url, logger, keepsExpired: true })
    const place = { brokers: kafka.brokers.split(','), topicPrefix: kafka.prefix, logger }
    target = await openKafkaLog(place)
    importing = await openKafkaImport(place)
  }, 90_000)

  afterAll(async () => {
    await source?.close()
    await target?.close()
    await importing?.close()
    await deleteTopics(kafka.brokers.split(','), kafka.prefix)
    await database?.drop()
  })

  const moveWith = (transform: Move['transform'] = (record) => record): Move => ({
    source,
    target,
    kafka: importing,
    transform,
    onRead: () => {},
  })

  /** Creates a topic with 60 records of 20 keys. The first ones were stored months before the last. */
  async function newTopic(): Promise<string> {
    const topic = `topic-${randomBytes(4).toString('hex')}`
    for (const log of [source, target]) await log.ensureTopics([{ topic, partitions }])
    await append(topic, 60)
    await database.pool.query(
      `update tidegate_log.records set stored_at = stored_at - $2 * (60 - "offset") where topic = $1`,
      [topic, 2 * day],
    )
    return topic
  }

  function append(topic: string, count: number) {
    const records = Array.from({ length: count }, (_, i) => ({
      topic,
      key: `key ${i % 20}`,
      value: randomBytes(50),
      headers: { event_id: randomBytes(4).toString('hex'), note: `ä"\\ ${i}` },
    }))
    return source.append(records)
  }

  const expire = (topic: string, where: string) =>
    database.pool.query(`delete from tidegate_log.records where topic = $1 and ${where}`, [topic])

  async function recordsOf(log: EventLog, topic: string): Promise<LogRecord[]> {
    const records = await allRecords(log, topic)
    return records.sort((a, b) => a.partition - b.partition || a.offset - b.offset)
  }

  test('has the same records, offsets and times, and a second move resumes at its end', async () => {
    const topic = await newTopic()
    const move = moveWith()
    await moveTopic(move, { topic, to: await verifyMoved(move, topic), keepsOffsets })
    await append(topic, 40)
    const to = await verifyMoved(move, topic)
    expect(to.reduce((sum, { offset }) => sum + offset, 0)).toBe(60)
    const moved = await moveTopic(move, { topic, to, keepsOffsets })
    expect(moved).toMatchObject({ records: 100, ends: await source.endPositions(topic) })
    expect(await recordsOf(target, topic)).toEqual(await recordsOf(source, topic))
  })

  test('has other offsets if its first records have expired', async () => {
    const topic = await newTopic()
    await expire(topic, '"offset" < 5')
    const from = await source.positionsSince(topic, 0)
    const move = moveWith()
    // The second move starts over.
    for (let times = 1; times <= 2; times++) {
      const to = await target.endPositions(topic)
      const { records } = await moveTopic(move, { topic, from, to, keepsOffsets: false })
      expect(records).toBe((await recordsOf(source, topic)).length)
      expect(await recordsOf(target, topic)).toHaveLength(records)
      await importing.deleteRecords(topic)
    }
  })

  test('throws if a record that must be kept forever is missing', async () => {
    const topic = await newTopic()
    await expire(topic, '"offset" = 3')
    const moving = moveTopic(moveWith(), { topic, to: [], keepsOffsets })
    await expect(moving).rejects.toThrow(/differs: \d+ records in the embedded log/)
  })

  test('differs when one record differs in a byte, a header, its key or its time', async () => {
    const changes: ((record: LogRecord) => LogRecord)[] = [
      (record) => ({ ...record, value: Buffer.concat([record.value, Buffer.alloc(1)]) }),
      (record) => ({ ...record, headers: { ...record.headers, note: 'other' } }),
      (record) => ({ ...record, timestamp: record.timestamp + 1 }),
      (record) => ({ ...record, key: 'other' }),
    ]
    for (const change of changes) {
      const topic = await newTopic()
      const move = moveWith((record) => (record.offset === 2 ? change(record) : record))
      await moveTopic(move, { topic, to: [], keepsOffsets })
      await expect(verifyMoved(moveWith(), topic)).rejects.toThrow(/are not from this embedded log/)
    }
  })
})
