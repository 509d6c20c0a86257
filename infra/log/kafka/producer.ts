import type { Kafka, Message, PartitionerArgs, Producer, RecordMetadata } from 'kafkajs'
import { within } from '../../timing.ts'
import type { PlacedRecord } from '../partition.ts'
import { type KeyedRecord, LogUnavailable, type Position } from '../port.ts'
import { type CompressionType, numberOfType } from './compression.ts'

export interface OpenProducer {
  producer: Producer
  /** Disconnects; may be called again. Nothing is sent any more, also no retry. */
  end(): Promise<void>
}

/**
 * An idempotent producer that can be stopped. After `disconnect`, kafkajs goes on with its retries and
 * connects again, so a write that was given up could land later. It asks the partitioner before each try,
 * which then refuses.
 */
export async function openProducer(kafka: Kafka): Promise<OpenProducer> {
  let ended = false
  const producer = kafka.producer({
    idempotent: true,
    allowAutoTopicCreation: false,
    createPartitioner:
      () =>
      ({ message }: PartitionerArgs) => {
        if (ended) throw Object.assign(new Error('the write was given up'), { retriable: false })
        return message.partition ?? unplaced()
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

function unplaced(): never {
  throw Object.assign(new Error('a record has no partition'), { retriable: false })
}

const replicasTimeoutMs = 4000

export interface SendOptions {
  prefix: string
  compressionType: CompressionType
}

export async function sendBatch(
  producer: Producer,
  records: PlacedRecord<KeyedRecord>[],
  { prefix, compressionType }: SendOptions,
): Promise<Position[]> {
  const byTopic = Map.groupBy(records, (record) => record.topic)
  const topicMessages = [...byTopic].map(([topic, some]) => ({
    topic: prefix + topic,
    messages: some.map(toMessage),
  }))
  const compression = numberOfType(compressionType)
  const answers = await producer.sendBatch({
    topicMessages,
    compression,
    acks: -1,
    timeout: replicasTimeoutMs,
  })
  return positionsOf(records, prefix, answers)
}

const toMessage = ({
  key,
  value,
  headers,
  partition,
  storedAt,
}: PlacedRecord<KeyedRecord>): Message => ({
  key,
  value,
  headers,
  partition,
  ...(storedAt !== undefined && { timestamp: String(storedAt) }),
})

// Kafka answers with the first offset of each partition; the records follow in the order sent.
function positionsOf(
  records: PlacedRecord<KeyedRecord>[],
  prefix: string,
  answers: RecordMetadata[],
): Position[] {
  const next = new Map<string, number>()
  for (const { topicName, partition, baseOffset } of answers) {
    if (baseOffset === undefined || baseOffset === '-1')
      throw new Error('the broker gave no offset')
    next.set(`${topicName} ${partition}`, Number(baseOffset))
  }
  return records.map(({ topic, partition }) => {
    const name = `${prefix}${topic} ${partition}`
    const offset = next.get(name)
    if (offset === undefined) throw new Error('the broker did not answer for every partition')
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
 * A client that is opened on first use and closed after any failure. kafkajs reuses the sequence numbers of a
 * request that timed out. The next records under them would be confirmed as duplicates without being stored.
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
      return await within(working, timeoutMs)
    } catch (cause) {
      if (current === client) current = undefined
      const closeAgain = () => client.then(close).catch(() => {})
      void closeAgain()
      // A retry of kafkajs that is under way connects again.
      const settled = working.then(closeAgain, closeAgain)
      throw new LogUnavailable('Kafka did not confirm in time', { cause, settled })
    }
  }

  return {
    use,
    async close(): Promise<void> {
      const client = await current?.catch(() => undefined)
      current = undefined
      if (client) await within(close(client), timeoutMs).catch(() => {})
    },
  }
}

export type ReconnectingClient<T> = ReturnType<typeof createReconnectingClient<T>>
