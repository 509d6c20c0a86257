import { globSync, statSync } from 'node:fs'
import path from 'node:path'
import { pino } from 'pino'
import { afterAll, beforeAll, expect } from 'vitest'
import { createKafkaClient } from '../../../infra/log/kafka/client.ts'
import { type KafkaLogOptions, openKafkaLog } from '../../../infra/log/kafka/log.ts'
import type { EventLog } from '../../../infra/log/port.ts'
import { type KafkaBroker, startKafkaBroker } from '../../support/kafka-broker.ts'
import { needs } from '../../support/needs.ts'
import { allRecords } from './all-records.ts'

const { describe, it } = needs('kafka-jars')

const logger = pino({ level: 'silent' })
const types = ['none', 'gzip', 'zstd'] as const

/** 400 records of a kilobyte that compresses well, all in one request. */
const records = (topic: string) =>
  Array.from({ length: 400 }, (_, n) => ({
    topic,
    key: `key ${n}`,
    value: Buffer.from(`${n} `.repeat(300)),
    headers: { number: String(n) },
  }))

describe('a broker', () => {
  let broker: KafkaBroker
  const logs: EventLog[] = []
  beforeAll(async () => {
    broker = await startKafkaBroker({ logger })
  }, 60_000)
  afterAll(async () => {
    await Promise.all(logs.map((log) => log.close()))
    await broker?.stop()
  })

  async function open(compressionType?: KafkaLogOptions['compressionType']): Promise<EventLog> {
    const options = { brokers: [broker.brokers], logger, replicationFactor: 1 }
    const log = await openKafkaLog({ ...options, ...(compressionType && { compressionType }) })
    logs.push(log)
    return log
  }

  async function createTopic(topic: string, compression: string): Promise<void> {
    const admin = createKafkaClient({ brokers: [broker.brokers], logger }).admin()
    await admin.connect()
    const configEntries = [{ name: 'compression.type', value: compression }]
    await admin.createTopics({
      topics: [{ topic, numPartitions: 1, replicationFactor: 1, configEntries }],
    })
    await admin.disconnect()
  }

  const stored = (topic: string) =>
    globSync(path.join(broker.dataDir, '**', `${topic}-0`, '*.log')).reduce(
      (sum, file) => sum + statSync(file).size,
      0,
    )

  it.each(types)(
    'stores records compressed with %s, which all clients read',
    async (type) => {
      const topic = `by-${type}`
      const log = await open(type)
      await log.ensureTopics([{ topic, partitions: 1 }])
      const positions = await log.append(records(topic))
      expect(positions.map(({ offset }) => offset)).toEqual(records(topic).map((_, n) => n))
      const size = records(topic).reduce((sum, { value }) => sum + value.length, 0)
      if (type === 'none') expect(stored(topic)).toBeGreaterThan(size)
      else expect(stored(topic)).toBeLessThan(size / 10)
      for (const reader of types)
        expect(await allRecords(await open(reader), topic)).toMatchObject(records(topic))
    },
    60_000,
  )

  it.each(['gzip', 'zstd'])(
    'that compresses with %s itself is readable, too',
    async (type) => {
      const topic = `itself-by-${type}`
      await createTopic(topic, type)
      const log = await open()
      await log.ensureTopics([{ topic, partitions: 1 }])
      await log.append(records(topic))
      expect(stored(topic)).toBeLessThan(100_000)
      expect(await allRecords(log, topic)).toMatchObject(records(topic))
      expect(String(await log.warnings())).not.toContain('compression.type')
    },
    60_000,
  )

  it('with an unsupported compression type causes a warning', async () => {
    await createTopic('by-lz4', 'lz4')
    const log = await open()
    await log.ensureTopics([{ topic: 'by-lz4', partitions: 1 }])
    expect(await log.warnings()).toContainEqual(
      expect.stringContaining('unsupported compression.type lz4'),
    )
  }, 60_000)
})
