import { setTimeout as delay } from 'node:timers/promises'
import kafkajs, { type Admin } from 'kafkajs'
import type { Logger } from 'pino'
import { createBatcher } from '../../flow/batcher.ts'
import {
  assignPartition,
  type PartitionedRecord,
  partitionOfKey,
  valueBytes,
} from '../partition.ts'
import {
  backoffMs,
  type EventLog,
  type KeyedRecord,
  type LogConsumer,
  type Position,
  type Topic,
  type TopicSpec,
} from '../port.ts'
import { createKafkaClient, type KafkaClientOptions } from './client.ts'
import { type CompressionType, readableTypes } from './compression.ts'
import { startKafkaConsumer } from './consumer.ts'
import {
  createReconnectingClient,
  openProducer,
  type ReconnectingClient,
  sendBatch,
} from './producer.ts'
import { applyTopicSettings, retentionEntries } from './topic-settings.ts'

export interface KafkaLogOptions extends Pick<KafkaClientOptions, 'security'> {
  brokers: string[]
  /** Prefix of topic and group names, so that several installations can share a cluster. */
  topicPrefix?: string
  logger: Logger
  clientId?: string
  /** For new topics. Default: the brokers' setting. */
  replicationFactor?: number
  minInsyncReplicas?: number | undefined
  /** Default: none. */
  compressionType?: CompressionType
}

const timeoutMs = 5000
const requestTimeout = 4500
// Size of a request over all its partitions. Topics are created so that they accept a batch of this size.
export const maxBatchBytes = 2 * 1024 * 1024
const maxMessageBytes = 2 * maxBatchBytes

export async function openKafkaLog(options: KafkaLogOptions): Promise<EventLog> {
  const { topicPrefix: prefix = '', compressionType = 'none' } = options
  const producer = createReconnectingClient({
    timeoutMs,
    open: () => openProducer(createKafkaClient({ ...options, requestTimeout, retries: 5 })),
    close: (opened) => opened.end(),
  })
  const admin = openAdmin(options)
  const topics = createTopicAdmin(admin, options)
  const consumers = new Set<LogConsumer>()
  const appends = createBatcher({
    runBatch: (records: PartitionedRecord<KeyedRecord>[]) =>
      producer.use(({ producer }) => sendBatch(producer, records, { prefix, compressionType })),
    maxItems: 5000,
    maxBytes: maxBatchBytes,
    bytesOf: valueBytes,
  })

  return {
    async append(records) {
      // Doesn't await if all topics are cached, so that consecutive appends keep their order.
      for (const { topic } of records) if (!topics.getCached(topic)) await topics.find(topic)
      return appends.run(
        records.map((record) => assignPartition(record, topics.getCached(record.topic))),
      )
    },

    async consume(consumeOptions) {
      await Promise.all(consumeOptions.topics.map(topics.find))
      const kafka = createKafkaClient(options)
      const consumer = await startKafkaConsumer({ kafka, prefix }, consumeOptions)
      const tracked = {
        async stop() {
          consumers.delete(tracked)
          await consumer.stop()
        },
      }
      consumers.add(tracked)
      return tracked
    },

    ...positionQueries(admin, prefix),

    async identity() {
      const { clusterId } = await admin.use((connected) => connected.describeCluster())
      return `Kafka cluster ${clusterId}${prefix && `, topics ${prefix}*`}`
    },

    partitionOf: async (topic, key) => partitionOfKey(key, await topics.find(topic)),
    ensureTopics: (specs) => topics.ensure(specs),
    warnings: topics.warnings,

    async check() {
      await admin.use((connected) => connected.describeCluster())
    },

    async close() {
      await Promise.all([...consumers].map((consumer) => consumer.stop()))
      await appends.idle()
      await Promise.all([producer.close(), admin.close()])
    },
  }
}

function positionQueries(
  admin: ReconnectingClient<Admin>,
  prefix: string,
): Pick<EventLog, 'firstPositions' | 'endPositions' | 'positionsSince' | 'committedPositions'> {
  async function watermarks(topic: Topic, which: 'low' | 'high'): Promise<Position[]> {
    const offsets = await admin.use((connected) => connected.fetchTopicOffsets(prefix + topic))
    return toPositions(topic, offsets, (entry) => entry[which])
  }

  return {
    firstPositions: (topic) => watermarks(topic, 'low'),
    endPositions: (topic) => watermarks(topic, 'high'),
    async positionsSince(topic, time) {
      const offsets = await admin.use((connected) =>
        connected.fetchTopicOffsetsByTimestamp(prefix + topic, time),
      )
      return toPositions(topic, offsets, ({ offset }) => offset)
    },
    async committedPositions(group, names) {
      const query = { groupId: prefix + group, topics: names.map((topic) => prefix + topic) }
      const offsets = await admin.use((connected) => connected.fetchOffsets(query))
      return offsets
        .flatMap(({ topic, partitions }) =>
          toPositions(topic.slice(prefix.length), partitions, ({ offset }) => offset),
        )
        .filter(({ offset }) => offset >= 0)
    },
  }
}

function toPositions<T extends { partition: number }>(
  topic: Topic,
  entries: T[],
  offsetOf: (entry: T) => string,
): Position[] {
  return entries
    .map((entry) => ({ topic, partition: entry.partition, offset: Number(offsetOf(entry)) }))
    .sort((a, b) => a.partition - b.partition)
}

// Serializes requests: if several connect to a broker at once, kafkajs 2.2.4 aborts its own TLS and SASL handshakes.
function openAdmin(options: KafkaLogOptions): ReconnectingClient<Admin> {
  const kafka = createKafkaClient({ ...options, requestTimeout, retries: 3 })
  const client = createReconnectingClient({
    timeoutMs,
    async open() {
      const admin = kafka.admin()
      await admin.connect()
      return admin
    },
    close: (admin) => admin.disconnect(),
  })
  let last: Promise<unknown> = Promise.resolve()
  return {
    ...client,
    use(work) {
      const result = last.then(() => client.use(work))
      last = result.catch(() => {})
      return result
    },
  }
}

// Rethrows a rejection of topic settings as an error that isn't retried.
function rethrowRejection(error: Error): never {
  const { cause } = error
  const rejection =
    cause instanceof kafkajs.KafkaJSAggregateError &&
    cause.errors.find(
      (part) => part instanceof kafkajs.KafkaJSProtocolError && rejectionType.test(part.type),
    )
  if (!(rejection instanceof Error)) throw error
  throw new Error(`the brokers rejected the settings of a topic: ${rejection.message}`, { cause })
}

const rejectionType = /^(INVALID_CONFIG|POLICY_VIOLATION)$/

function createTopicAdmin(admin: ReconnectingClient<Admin>, options: KafkaLogOptions) {
  const { topicPrefix: prefix = '', replicationFactor = -1, minInsyncReplicas, logger } = options
  const partitionCounts = new Map<Topic, number>()
  let settingsWarnings: string[] = []

  async function find(topic: Topic): Promise<number> {
    const cached = partitionCounts.get(topic)
    if (cached !== undefined) return cached
    const { topics } = await admin.use((connected) =>
      connected.fetchTopicMetadata({ topics: [prefix + topic] }),
    )
    const count = topics[0]?.partitions.length ?? 0
    if (count === 0) throw new Error(`topic ${topic} does not exist`)
    partitionCounts.set(topic, count)
    return count
  }

  async function ensure(specs: TopicSpec[]): Promise<void> {
    const topics = specs.map((spec) => ({
      topic: prefix + spec.topic,
      numPartitions: spec.partitions,
      replicationFactor,
      configEntries: configEntries(spec, minInsyncReplicas),
    }))
    // Not `waitForLeaders`: it fails if a broker doesn't know the topic yet, and ends before every leader is elected.
    await admin
      .use((connected) => connected.createTopics({ topics, waitForLeaders: false }))
      .catch(rethrowRejection)
    await Promise.all(specs.map(({ topic }) => waitUntilReady(topic)))
    const newWarnings = await applyTopicSettings({ admin, prefix, specs, maxMessageBytes, logger })
    settingsWarnings = [...new Set([...settingsWarnings, ...newWarnings])]
  }

  async function waitUntilReady(topic: Topic, failures = 0): Promise<void> {
    try {
      await find(topic)
      await admin.use((connected) => connected.fetchTopicOffsets(prefix + topic))
    } catch (error) {
      if (failures >= 6) throw error
      await delay(backoffMs(failures + 1))
      await waitUntilReady(topic, failures + 1)
    }
  }

  async function warnings(): Promise<string[]> {
    const names = [...partitionCounts.keys()].map((topic) => prefix + topic)
    const { topics } = await admin.use((connected) =>
      connected.fetchTopicMetadata({ topics: names }),
    )
    const { resources } = await admin.use((connected) =>
      connected.describeConfigs({
        includeSynonyms: false,
        resources: names.map((name) => ({
          type: kafkajs.ConfigResourceTypes.TOPIC,
          name,
          configNames: ['min.insync.replicas', 'compression.type'],
        })),
      }),
    )
    const copies = topics.flatMap(({ partitions }) => partitions.map((p) => p.replicas.length))
    const valuesOf = (name: string) =>
      resources.flatMap(({ configEntries }) =>
        configEntries
          .filter(({ configName }) => configName === name)
          .map(({ configValue }) => configValue),
      )
    const durability = durabilityWarnings({
      copies: Math.min(...copies),
      inSync: Math.min(...valuesOf('min.insync.replicas').map(Number)),
      compressionTypes: valuesOf('compression.type'),
    })
    return [...settingsWarnings, ...durability]
  }

  return { find, ensure, warnings, getCached: (topic: Topic) => partitionCounts.get(topic) }
}

const configEntries = (spec: TopicSpec, minInsyncReplicas: number | undefined) => [
  ...retentionEntries(spec),
  { name: 'max.message.bytes', value: String(maxMessageBytes) },
  // Records that were moved from the embedded log keep their time.
  { name: 'message.timestamp.type', value: 'CreateTime' },
  // The broker's default might be a type that consumers can't read.
  { name: 'compression.type', value: 'producer' },
  ...(minInsyncReplicas ? [{ name: 'min.insync.replicas', value: String(minInsyncReplicas) }] : []),
]

/** `copies` and `inSync` are the lowest values of all topics. */
function durabilityWarnings({
  copies,
  inSync,
  compressionTypes,
}: {
  copies: number
  inSync: number
  compressionTypes: string[]
}): string[] {
  const unreadable = compressionTypes.find((type) => !readableTypes.includes(type))
  return [
    ...(copies < 3
      ? [
          `a topic has a replication factor of ${copies}: below 3, losing a broker blocks writes or loses records`,
        ]
      : []),
    ...(inSync < 2
      ? [
          `min.insync.replicas is ${inSync}: below 2, a write can be confirmed while only one broker has it`,
        ]
      : []),
    ...(unreadable === undefined
      ? []
      : [`a topic has the unsupported compression.type ${unreadable}: set it to producer`]),
  ]
}
