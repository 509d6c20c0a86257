import { randomBytes, randomUUID } from 'node:crypto'
import { Kafka, logLevel, Partitioners } from 'kafkajs'
import { z } from 'zod'
import { openKafkaLog } from '../../infra/log/kafka/log.ts'
import type { NewRecord } from '../../infra/log/port.ts'
import { createLogger } from '../../infra/telemetry.ts'
import { serveRounds } from '../round-server.ts'

// Appends to Kafka with our log or with plain kafkajs, in separate processes, because our log replaces parts of
// kafkajs.
const roundSchema = z.object({ inFlight: z.int(), seconds: z.number() })
const { KAFKA_BROKERS = '', KAFKA_TOPIC_PREFIX: topicPrefix = '' } = process.env
const brokers = KAFKA_BROKERS.split(',')
const topic = 'bench.peers.v1'

interface Appender {
  append(record: NewRecord): Promise<unknown>
  close(): Promise<void>
}

async function openOurs(): Promise<Appender> {
  const log = await openKafkaLog({ brokers, topicPrefix, logger: createLogger('warn') })
  await log.ensureTopics([{ topic, partitions: 12 }])
  return { append: (record) => log.append([record]), close: () => log.close() }
}

async function openPlain(): Promise<Appender> {
  const kafka = new Kafka({ brokers, logLevel: logLevel.ERROR })
  const producer = kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner })
  await producer.connect()
  return {
    append: ({ key, value, headers }) =>
      producer.send({ topic: topicPrefix + topic, acks: -1, messages: [{ key, value, headers }] }),
    close: () => producer.disconnect(),
  }
}

const appender = await (process.argv[2] === 'ours' ? openOurs() : openPlain())

async function appendFor(round: unknown) {
  const { inFlight, seconds } = roundSchema.parse(round)
  const begun = performance.now()
  let requests = 0
  const client = async () => {
    for (; performance.now() - begun < seconds * 1000; requests++)
      await appender.append({
        topic,
        key: randomUUID(),
        value: randomBytes(1024),
        headers: { type: 'Bench' },
      })
  }
  await Promise.all(Array.from({ length: inFlight }, client))
  return { requests, seconds: (performance.now() - begun) / 1000 }
}

await serveRounds({ name: 'Kafka appends', run: appendFor, close: appender.close })
