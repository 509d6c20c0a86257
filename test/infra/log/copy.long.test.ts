import { randomBytes } from 'node:crypto'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, onTestFinished } from 'vitest'
import { compareTopic } from '../../../infra/log/copy/compare-topic.ts'
import { type CopyPlace, refuseOtherRecords } from '../../../infra/log/copy/copied.ts'
import { copyTopic } from '../../../infra/log/copy/copy-topic.ts'
import { openKafkaLog } from '../../../infra/log/kafka/log.ts'
import type { EventLog, LogRecord, ReceivingLog } from '../../../infra/log/port.ts'
import { openPostgresLog } from '../../../infra/log/postgres/log.ts'
import { readTopicToEnd } from '../../../infra/log/read-topic.ts'
import { kafkaPlace } from '../../support/cluster.ts'
import { deleteRecords, deleteTopics } from '../../support/logs.ts'
import { needs } from '../../support/needs.ts'
import { createTestDatabase, type TestDatabase } from '../../support/postgres.ts'

const { describe, test } = needs('kafka')

const logger = pino({ level: 'silent' })
const day = 24 * 60 * 60 * 1000
const partitions = 3

describe('a topic of the embedded log on Kafka', { timeout: 60_000 }, () => {
  let database: TestDatabase
  let source: EventLog
  /** Of a process of before: `source` has nothing in memory of what it appended. */
  let writer: EventLog
  let target: ReceivingLog
  let kafka: Awaited<ReturnType<typeof kafkaPlace>>

  beforeAll(async () => {
    database = await createTestDatabase()
    kafka = await kafkaPlace()
    source = await openEmbedded()
    writer = await openEmbedded()
    target = await openKafkaLog({
      brokers: kafka.brokers.split(','),
      topicPrefix: kafka.prefix,
      logger,
    })
  }, 90_000)

  afterAll(async () => {
    await source?.close()
    await writer?.close()
    await target?.close()
    await deleteTopics(kafka.brokers.split(','), kafka.prefix)
    await database?.drop()
  })

  const openEmbedded = () =>
    openPostgresLog({ pool: database.pool, url: database.url, logger, keepsExpired: true })

  /** 60 records of 20 keys, the first of which were stored months before the last. */
  async function newPlace(expires = false): Promise<CopyPlace> {
    const topic = `topic-${randomBytes(4).toString('hex')}`
    for (const log of [source, target]) await log.ensureTopics([{ topic, partitions }])
    await append(topic, 60)
    await database.pool.query(
      `update tidegate_log.records set stored_at = stored_at - $2 * (60 - "offset") where topic = $1`,
      [topic, 2 * day],
    )
    return { source, target, topic, expires }
  }

  function append(topic: string, count: number) {
    const records = Array.from({ length: count }, (_, i) => ({
      topic,
      key: `key ${i % 20}`,
      value: randomBytes(50),
      headers: { event_id: randomBytes(4).toString('hex'), note: `ä"\\ ${i}` },
    }))
    return writer.append(records)
  }

  const expire = (topic: string, where: string) =>
    database.pool.query(`delete from tidegate_log.records where topic = $1 and ${where}`, [topic])

  async function recordsOf(log: EventLog, topic: string): Promise<LogRecord[]> {
    const records: LogRecord[] = []
    await readTopicToEnd({
      log,
      topic,
      handle: (batches) => void records.push(...batches.flatMap((batch) => batch.records)),
    })
    return records.sort((a, b) => a.partition - b.partition || a.offset - b.offset)
  }

  test('has the same records at the same offsets, with their times, and goes on where it ended', async () => {
    const place = await newPlace()
    const { topic } = place
    await refuseOtherRecords(place)
    await copyTopic(place)
    await append(topic, 40)
    await refuseOtherRecords(place)
    let copied = 0
    const { ends } = await copyTopic({ ...place, onCopied: (records) => (copied += records) })
    expect(copied).toBe(40)
    expect(await recordsOf(target, topic)).toEqual(await recordsOf(source, topic))
    expect(await compareTopic({ ...place, ends })).toBe(100)
  })

  test('has other offsets where the first records had expired, and says which', async () => {
    const place = await newPlace(true)
    const { topic } = place
    await expire(topic, '"offset" < 5')
    await copyTopic(place)
    // More expires, out of order too, as after a jump of the clock.
    await append(topic, 60)
    await expire(topic, '("offset" < 9 or "offset" between 30 and 32)')
    // The next copy is another process. `source` may have in memory what came to the log, and has expired since.
    const later = await openEmbedded()
    onTestFinished(() => later.close())
    await refuseOtherRecords({ ...place, source: later })
    const { ends, offsets } = await copyTopic({ ...place, source: later })
    await compareTopic({ ...place, source: later, ends })
    const copies = await recordsOf(target, topic)
    for (const record of await recordsOf(later, topic)) {
      const copy = copies.find(
        (one) => one.partition === record.partition && one.offset === offsets.ofRecord(record),
      )
      expect(copy?.value).toEqual(record.value)
      expect(copy?.timestamp).toBe(record.timestamp)
      expect(offsets.ofNext(record)).toBe(copy?.offset)
    }
  })

  test('is copied anew where all that was copied has expired', async () => {
    const place = await newPlace(true)
    const { topic } = place
    await copyTopic(place)
    const ends = await target.endPositions(topic)
    await deleteRecords(kafka.brokers.split(','), kafka.prefix + topic)
    await expire(topic, '"offset" < 9')
    await refuseOtherRecords(place)
    const copied = await copyTopic(place)
    await compareTopic({ ...place, ends: copied.ends })
    for (const end of ends) expect(copied.offsets.ofNext({ ...end, offset: 9 })).toBe(end.offset)
  })

  test('is refused where a record that is kept for ever is missing', async () => {
    const place = await newPlace()
    await expire(place.topic, '"offset" = 3')
    await expect(copyTopic(place)).rejects.toThrow(/lacks offset 3 in the embedded log/)
  })

  test('is refused where other records are on Kafka, or more partitions', async () => {
    const place = await newPlace()
    const { topic } = place
    await target.append([
      { topic, key: 'key 1', value: Buffer.from('other'), headers: { event_id: 'x' } },
    ])
    const other = /has records that are not of this embedded log. Choose another KAFKA_TOPIC_PREFIX/
    await expect(refuseOtherRecords(place)).rejects.toThrow(other)
    await expect(refuseOtherRecords({ ...place, expires: true })).rejects.toThrow(other)
    const wide = `${topic}-wide`
    await source.ensureTopics([{ topic: wide, partitions }])
    await target.ensureTopics([{ topic: wide, partitions: 4 }])
    await expect(refuseOtherRecords({ ...place, topic: wide })).rejects.toThrow(
      /4 partitions on Kafka and 3/,
    )
  })

  test('is no copy when one record differs in a byte, a header or its time', async () => {
    const changes: ((record: LogRecord) => LogRecord)[] = [
      (record) => ({ ...record, value: Buffer.concat([record.value, Buffer.alloc(1)]) }),
      (record) => ({ ...record, headers: { ...record.headers, note: 'other' } }),
      (record) => ({ ...record, timestamp: record.timestamp + 1 }),
      (record) => ({ ...record, key: 'other' }),
    ]
    for (const change of changes) {
      const place = await newPlace()
      const second = (record: LogRecord) => (record.offset === 2 ? change(record) : record)
      const { ends } = await copyTopic({ ...place, change: second })
      await expect(compareTopic({ ...place, ends })).rejects.toThrow(
        /differs: \d+ records in the embedded log/,
      )
    }
  })

  test('takes over what a group has committed', async () => {
    const { topic } = await newPlace()
    const next = [0, 2].map((partition) => ({ topic, partition, offset: partition + 4 }))
    await target.commit('a-group', next)
    expect(await target.committed('a-group', [topic])).toEqual(next)
  })
})
