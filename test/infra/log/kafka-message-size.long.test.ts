import { randomBytes } from 'node:crypto'
import kafkajs from 'kafkajs'
import pino from 'pino'
import { afterAll, beforeAll, expect, inject } from 'vitest'
import { createKafkaClient } from '../../../infra/log/kafka/client.ts'
import { openKafkaLog } from '../../../infra/log/kafka/log.ts'
import type { EventLog } from '../../../infra/log/port.ts'
import { kafkaIsUp } from '../../support/kafka.ts'
import { deleteTopics } from '../../support/logs.ts'
import { needs } from '../../support/needs.ts'

const { describe, it } = needs('kafka')

describe('a topic with a small max.message.bytes', () => {
  const topicPrefix = `test-${randomBytes(6).toString('hex')}.`
  const specs = [
    { topic: 'bodies', partitions: 1, maxRecordBytes: 150_000 },
    { topic: 'rest', partitions: 1 },
  ]
  const lines: Record<string, unknown>[] = []
  const logger = pino({ level: 'error' }, { write: (line) => void lines.push(JSON.parse(line)) })
  let brokers: string[]
  let log: EventLog
  beforeAll(async () => {
    const addresses = inject('kafkaBrokers') ?? ''
    await kafkaIsUp(addresses)
    brokers = addresses.split(',')
    log = await openKafkaLog({ brokers, topicPrefix, logger })
  })
  afterAll(async () => {
    await log?.close()
    await deleteTopics(brokers, topicPrefix)
  })

  async function limit(topic: string, bytes: number): Promise<void> {
    const admin = createKafkaClient({ brokers, logger: pino({ level: 'silent' }) }).admin()
    await admin.connect()
    const configEntries = [{ name: 'max.message.bytes', value: String(bytes) }]
    const type = kafkajs.ConfigResourceTypes.TOPIC
    const resources = [{ type, name: topicPrefix + topic, configEntries }]
    await admin.alterConfigs({ validateOnly: false, resources })
    await admin.disconnect()
  }

  it('is logged as an error, and throws if it cannot hold its largest record', async () => {
    await log.ensureTopics(specs)
    expect(lines).toEqual([])

    await limit('bodies', 150_000)
    await limit('rest', 1_048_588)
    await log.ensureTopics(specs)
    const needed = 4 * 1024 * 1024
    expect(lines).toEqual([
      expect.objectContaining({ topic: `${topicPrefix}bodies`, value: 150_000, needed }),
      expect.objectContaining({ topic: `${topicPrefix}rest`, value: 1_048_588, needed }),
    ])

    await limit('bodies', 149_999)
    await expect(log.ensureTopics(specs)).rejects.toThrow(
      `topic ${topicPrefix}bodies: max.message.bytes must be ${needed}, got 149999: records can be 150000 bytes`,
    )
  }, 60_000)
})
