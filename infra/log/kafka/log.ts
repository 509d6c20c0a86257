import { setTimeout as delay } from 'node:timers/promises'
import kafkajs, { type Admin } from 'kafkajs'
import type { Logger } from 'pino'
import { createGroupCommit } from '../../flow/group-commit.ts'
import { type PlacedRecord, partitionOfKey, placeRecord, valueBytes } from '../partition.ts'
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
import { followSettings, retentionEntries } from './topic-settings.ts'

export interface KafkaLogOptions extends Pick<KafkaClientOptions, 'security'> {
  brokers: string[]
  /** Prefix of the names of topics and groups, so that several installations can share a cluster. */
  topicPrefix?: string
  logger: Logger
  clientId?: string
  /** For topics that are made; where it is absent, the brokers' own setting counts. */
  replicationFactor?: number
  minInsyncReplicas?: number | undefined
  /** Default: none. */
  compressionType?: CompressionType
}

const timeoutMs = 5000
const requestTimeout = 4500
// The bytes of one request for all its partitions, because topics are created to take a batch of this size.
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
  const topics = createTopics(admin, options)
  const consumers = new Set<LogConsumer>()
  const commit = createGroupCommit({
    write: (records: PlacedRecord<KeyedRecord>[]) =>
      producer.use(({ producer }) => sendBatch(producer, records, { prefix, compressionType })),
    maxRecords: 5000,
    maxBytes: maxBatchBytes,
    bytesOf: valueBytes,
  })

  return {
    async append(records) {
      // No await where all topics are known: appends made one after the other must keep their order.
      for (const { topic } of records) if (!topics.known(topic)) await topics.find(topic)
      return commit.append(records.map((record) => placeRecord(record, topics.known(record.topic))))
    },

    async consume(consumeOptions) {
      await Promise.all(consumeOptions.topics.map(topics.find))
      const kafka = createKafkaClient(options)
      const consumer = await startKafkaConsumer({ kafka, prefix }, consumeOptions)
      const registered = {
        async stop() {
          consumers.delete(registered)
          await consumer.stop()
        },
      }
      consumers.add(registered)
      return registered
    },

    ...positionsOf(admin, prefix),

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
      await commit.idle()
      await Promise.all([producer.close(), admin.close()])
    },
  }
}

function positionsOf(
  admin: ReconnectingClient<Admin>,
  prefix: string,
): Pick<EventLog, 'firstPositions' | 'endPositions' | 'positionsSince' | 'committed'> {
  async function positionsIn(topic: Topic, which: 'low' | 'high'): Promise<Position[]> {
    const offsets = await admin.use((connected) => connected.fetchTopicOffsets(prefix + topic))
    return ordered(topic, offsets, (of) => of[which])
  }

  return {
    firstPositions: (topic) => positionsIn(topic, 'low'),
    endPositions: (topic) => positionsIn(topic, 'high'),
    async positionsSince(topic, time) {
      const found = await admin.use((connected) =>
        connected.fetchTopicOffsetsByTimestamp(prefix + topic, time),
      )
      return ordered(topic, found, ({ offset }) => offset)
    },
    async committed(group, names) {
      const query = { groupId: prefix + group, topics: names.map((topic) => prefix + topic) }
      const found = await admin.use((connected) => connected.fetchOffsets(query))
      return found
        .flatMap(({ topic, partitions }) =>
          ordered(topic.slice(prefix.length), partitions, ({ offset }) => offset),
        )
        .filter(({ offset }) => offset >= 0)
    },
  }
}

function ordered<T extends { partition: number }>(
  topic: Topic,
  offsets: T[],
  offsetOf: (of: T) => string,
): Position[] {
  return offsets
    .map((of) => ({ topic, partition: of.partition, offset: Number(offsetOf(of)) }))
    .sort((a, b) => a.partition - b.partition)
}

// One request at a time: when several connect to a broker at once, kafkajs 2.2.4 breaks off its own TLS and SASL.
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
      const answer = last.then(() => client.use(work))
      last = answer.catch(() => {})
      return answer
    },
  }
}

// The brokers answered, and will not answer otherwise.
function refused(error: Error): never {
  const { cause } = error
  const found =
    cause instanceof kafkajs.KafkaJSAggregateError &&
    cause.errors.find(
      (one) => one instanceof kafkajs.KafkaJSProtocolError && isRefusal.test(one.type),
    )
  if (!(found instanceof Error)) throw error
  throw new Error(`the brokers refuse the settings of a topic: ${found.message}`, { cause })
}

const isRefusal = /^(INVALID_CONFIG|POLICY_VIOLATION)$/

function createTopics(admin: ReconnectingClient<Admin>, options: KafkaLogOptions) {
  const { topicPrefix: prefix = '', replicationFactor = -1, minInsyncReplicas, logger } = options
  const partitions = new Map<Topic, number>()
  let ofRetention: string[] = []

  async function find(topic: Topic): Promise<number> {
    const known = partitions.get(topic)
    if (known !== undefined) return known
    const { topics } = await admin.use((connected) =>
      connected.fetchTopicMetadata({ topics: [prefix + topic] }),
    )
    const count = topics[0]?.partitions.length ?? 0
    if (count === 0) throw new Error(`topic ${topic} does not exist`)
    partitions.set(topic, count)
    return count
  }

  async function ensure(specs: TopicSpec[]): Promise<void> {
    const topics = specs.map((spec) => ({
      topic: prefix + spec.topic,
      numPartitions: spec.partitions,
      replicationFactor,
      configEntries: configEntries(spec, minInsyncReplicas),
    }))
    // kafkajs's own wait ends with an error at a broker that does not show the topic yet, and too early at one that
    // is not its leader yet.
    await admin
      .use((connected) => connected.createTopics({ topics, waitForLeaders: false }))
      .catch(refused)
    await Promise.all(specs.map(({ topic }) => findNew(topic)))
    const warnings = await followSettings({ admin, prefix, specs, maxMessageBytes, logger })
    ofRetention = [...new Set([...ofRetention, ...warnings])]
  }

  async function findNew(topic: Topic, failures = 0): Promise<void> {
    try {
      await find(topic)
      await admin.use((connected) => connected.fetchTopicOffsets(prefix + topic))
    } catch (error) {
      if (failures >= 6) throw error
      await delay(backoffMs(failures + 1))
      await findNew(topic, failures + 1)
    }
  }

  async function warnings(): Promise<string[]> {
    const names = [...partitions.keys()].map((topic) => prefix + topic)
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
    const copies = topics.flatMap((topic) => topic.partitions.map((one) => one.replicas.length))
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
    return [...ofRetention, ...durability]
  }

  return { find, ensure, warnings, known: (topic: Topic) => partitions.get(topic) }
}

const configEntries = (spec: TopicSpec, minInsyncReplicas: number | undefined) => [
  ...retentionEntries(spec),
  { name: 'max.message.bytes', value: String(maxMessageBytes) },
  // A record that was moved from the embedded log keeps its time.
  { name: 'message.timestamp.type', value: 'CreateTime' },
  // A broker's own might be one that is not read.
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
      ? [`a topic has ${copies} copies: below 3, a lost broker stops or loses records`]
      : []),
    ...(inSync < 2
      ? [`min.insync.replicas is ${inSync}: below 2, one broker may confirm what it alone has`]
      : []),
    ...(unreadable === undefined
      ? []
      : [`a topic has compression.type ${unreadable}, which is not read: set it to producer`]),
  ]
}
