import type { Kafka, Message, PartitionerArgs, Producer, RecordMetadata } from 'kafkajs'
import { withTimeout } from '../../timing.ts'
import type { PartitionedRecord } from '../partition.ts'
import { type KeyedRecord, LogUnavailable, type Position } from '../port.ts'
import { type CompressionType, compressionCode } from './compression.ts'

export interface OpenProducer {
  producer: Producer
  /** Disconnects and aborts pending retries: nothing is sent afterwards. Idempotent. */
  end(): Promise<void>
}

/**
 * Opens an idempotent producer whose `end` is final. After `disconnect` alone, a retry of kafkajs could still write, so
 * the partitioner, which is called before each attempt, throws.
 */
export async function openProducer(kafka: Kafka): Promise<OpenProducer> {
  let ended = false
  const producer = kafka.producer({
    idempotent: true,
    allowAutoTopicCreation: false,
    createPartitioner:
      () =>
      ({ message }: PartitionerArgs) => {
        if (ended) throw Object.assign(new Error('the write was aborted'), { retriable: false })
        return message.partition ?? throwUnassigned()
      },
  })
  await producer.connect()
  return {
    producer,
    async end() {
      ended = true
      await producer.disconnect()
    },
  }
}

function throwUnassigned(): never {
  throw Object.assign(new Error('a record has no partition'), { retriable: false })
}

const replicasTimeoutMs = 4000

export interface SendOptions {
  prefix: string
  compressionType: CompressionType
}

export async function sendBatch(
  producer: Producer,
  records: PartitionedRecord<KeyedRecord>[],
  { prefix, compressionType }: SendOptions,
): Promise<Position[]> {
  const byTopic = Map.groupBy(records, (record) => record.topic)
  const topicMessages = [...byTopic].map(([topic, recordsOfTopic]) => ({
    topic: prefix + topic,
    messages: recordsOfTopic.map(toMessage),
  }))
  const compression = compressionCode(compressionType)
  const metadata = await producer.sendBatch({
    topicMessages,
    compression,
    acks: -1,
    timeout: replicasTimeoutMs,
  })
  return positionsOf(records, prefix, metadata)
}

const toMessage = ({
  key,
  value,
  headers,
  partition,
  storedAt,
}: PartitionedRecord<KeyedRecord>): Message => ({
  key,
  value,
  headers,
  partition,
  ...(storedAt !== undefined && { timestamp: String(storedAt) }),
})

// Computes the records' offsets from their partition's base offset, in the order sent.
function positionsOf(
  records: PartitionedRecord<KeyedRecord>[],
  prefix: string,
  metadata: RecordMetadata[],
): Position[] {
  const next = new Map<string, number>()
  for (const { topicName, partition, baseOffset } of metadata) {
    if (baseOffset === undefined || baseOffset === '-1')
      throw new Error('the broker returned no offset')
    next.set(`${topicName} ${partition}`, Number(baseOffset))
  }
  return records.map(({ topic, partition }) => {
    const name = `${prefix}${topic} ${partition}`
    const offset = next.get(name)
    if (offset === undefined) throw new Error('the broker did not respond for every partition')
    next.set(name, offset + 1)
    return { topic, partition, offset }
  })
}

export interface ReconnectingClientOptions<T> {
  open: () => Promise<T>
  close: (client: T) => Promise<void>
  timeoutMs: number
}

/**
 * Creates a client that is opened on first use and replaced after any failure. Otherwise kafkajs would reuse sequence
 * numbers after a timeout, and brokers would confirm the next records as duplicates without storing them.
 */
export function createReconnectingClient<T>({
  open,
  close,
  timeoutMs,
}: ReconnectingClientOptions<T>) {
  let current: Promise<T> | undefined

  async function use<R>(work: (client: T) => Promise<R>): Promise<R> {
    current ??= open()
    const client = current
    const working = client.then(work)
    try {
      return await withTimeout(working, timeoutMs)
    } catch (cause) {
      if (current === client) current = undefined
      const closeAgain = () => client.then(close).catch(() => {})
      void closeAgain()
      // Close again afterwards, because a running retry of kafkajs reconnects.
      const settled = working.then(closeAgain, closeAgain)
      throw new LogUnavailable('Kafka did not confirm the write in time', { cause, settled })
    }
  }

  return {
    use,
    async close(): Promise<void> {
      const client = await current?.catch(() => undefined)
      current = undefined
      if (client) await withTimeout(close(client), timeoutMs).catch(() => {})
    },
  }
}

export type ReconnectingClient<T> = ReturnType<typeof createReconnectingClient<T>>
