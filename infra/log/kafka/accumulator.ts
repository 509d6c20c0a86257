import type { Consumer, EachBatchPayload, KafkaMessage } from 'kafkajs'
import { callHandler } from '../call-handler.ts'
import {
  type Batch,
  backoffMs,
  type ConsumeOptions,
  type LogRecord,
  type Position,
  partitionName,
  type ResumePosition,
} from '../port.ts'

export interface AccumulatorDeps {
  consumer: Consumer
  committer: ReturnType<typeof createOffsetCommitter>
  starter: ReturnType<typeof createPartitionStarter>
  stripPrefix: (topic: string) => string
  options: ConsumeOptions
  isStopping: () => boolean
}

/** A fetched batch whose `messages` have not been delivered yet. */
interface PendingFetch {
  payload: EachBatchPayload
  messages: KafkaMessage[]
  done: () => void
}

interface Delivery {
  pending: PendingFetch
  batch: Batch
}

const heartbeatEveryMs = 1000
const defaultMaxRecords = 1000

/**
 * Returns the eachBatch callback for kafkajs, which calls it concurrently for each partition. Collects the fetched
 * batches of all partitions and delivers them together, about `maxRecords` at a time. A failed partition backs off.
 */
export function createAccumulator(deps: AccumulatorDeps) {
  const { consumer, committer, starter, stripPrefix, options, isStopping } = deps
  const failures = new Map<string, number>()
  let queue: PendingFetch[] = []
  let isDraining = false

  async function eachBatch(payload: EachBatchPayload): Promise<void> {
    const { promise, resolve: done } = Promise.withResolvers<void>()
    queue.push({ payload, messages: payload.batch.messages, done })
    void drain()
    await withHeartbeat(payload, promise)
  }

  async function drain(): Promise<void> {
    if (isDraining) return
    isDraining = true
    // The partitions of one fetch arrive within the same turn of the event loop.
    await new Promise(setImmediate)
    while (queue.length > 0) await deliver(takeBatches())
    isDraining = false
  }

  function takeBatches(): Delivery[] {
    const deliveries: Delivery[] = []
    let room = options.maxRecords ?? defaultMaxRecords
    for (const pending of queue) {
      if (!isDeliverable(pending)) pending.done()
      else if (room > 0) {
        const batch = batchOf(pending, { topic: stripPrefix(pending.payload.batch.topic), room })
        room -= batch.records.length
        deliveries.push({ pending, batch })
      }
    }
    const taken = new Set(deliveries.map(({ pending }) => pending))
    queue = queue.filter((pending) => isDeliverable(pending) && !taken.has(pending))
    return deliveries
  }

  function isDeliverable({ payload, messages }: PendingFetch): boolean {
    const { topic, partition } = payload.batch
    if (isStopping() || messages.length === 0 || !starter.isReady(topic, partition)) return false
    return payload.isRunning() && !payload.isStale()
  }

  async function deliver(deliveries: Delivery[]): Promise<void> {
    if (deliveries.length === 0) return
    const batches = deliveries.map(({ batch }) => batch)
    const resumes = await callHandler(options, batches)
    for (const delivery of deliveries) finish(delivery, resumes.get(partitionName(delivery.batch)))
  }

  function finish({ pending, batch }: Delivery, resume: ResumePosition | undefined): void {
    const { topic, partition } = pending.payload.batch
    const last = batch.records.at(-1)?.offset ?? 0
    if (options.commitsOffsets ?? true)
      committer.add({ topic, partition, offset: resume?.offset ?? last + 1 })
    if (resume) {
      consumer.seek({ topic, partition, offset: String(resume.offset) })
      if (resume.failed) retryLater(pending.payload)
      pending.done()
      return
    }
    failures.delete(partitionName(pending.payload.batch))
    pending.payload.resolveOffset(String(last))
    const messages = pending.messages.slice(batch.records.length)
    if (messages.length > 0) queue.push({ ...pending, messages })
    else pending.done()
  }

  // Pauses only this partition: the others continue, and the group doesn't see a failure.
  function retryLater(payload: EachBatchPayload): void {
    const name = partitionName(payload.batch)
    const count = (failures.get(name) ?? 0) + 1
    failures.set(name, count)
    const resume = payload.pause()
    setTimeout(() => !isStopping() && resume(), backoffMs(count)).unref()
  }

  return eachBatch
}

// Sends heartbeats until `work` settles, because a handler may take longer than the session timeout.
function withHeartbeat(payload: EachBatchPayload, work: Promise<void>): Promise<void> {
  const timer = setInterval(() => payload.heartbeat().catch(() => {}), heartbeatEveryMs)
  return work.finally(() => clearInterval(timer))
}

function batchOf(
  { payload, messages }: PendingFetch,
  { topic, room }: { topic: string; room: number },
): Batch {
  const { partition } = payload.batch
  const records = messages.slice(0, room).map((message) => toRecord(message, topic, partition))
  return { topic, partition, records }
}

function toRecord(message: KafkaMessage, topic: string, partition: number): LogRecord {
  return {
    topic,
    partition,
    offset: Number(message.offset),
    key: message.key?.toString() ?? '',
    value: message.value ?? Buffer.alloc(0),
    headers: Object.fromEntries(
      Object.entries(message.headers ?? {}).map(([k, v]) => [k, String(v)]),
    ),
    timestamp: Number(message.timestamp),
  }
}

export interface StarterOptions {
  consumer: Consumer
  stripPrefix: (topic: string) => string
  options: ConsumeOptions
}

/**
 * Starts each assigned partition at its start offset. kafkajs awaits no hook, so its assignment event pauses the
 * partitions before the first fetch, until their offset is known.
 */
export function createPartitionStarter({ consumer, stripPrefix, options }: StarterOptions) {
  const { startOffset, onError } = options
  const ready = new Set<string>()
  let generation = 0

  async function start(
    topic: string,
    partition: number,
    startedIn: number,
    failures = 0,
  ): Promise<void> {
    try {
      const offset = await startOffset?.(stripPrefix(topic), partition)
      if (startedIn !== generation) return
      if (offset !== undefined) consumer.seek({ topic, partition, offset: String(offset) })
      ready.add(`${topic} ${partition}`)
      consumer.resume([{ topic, partitions: [partition] }])
    } catch (error) {
      onError?.(error, { topic: stripPrefix(topic), partition, offset: 0 })
      const retry = () =>
        startedIn === generation && void start(topic, partition, startedIn, failures + 1)
      setTimeout(retry, backoffMs(failures + 1)).unref()
    }
  }

  return {
    onAssigned(assignment: Record<string, number[]>): void {
      generation += 1
      ready.clear()
      for (const [topic, partitions] of Object.entries(assignment)) {
        if (startOffset) consumer.pause([{ topic, partitions }])
        for (const partition of partitions) {
          if (startOffset) void start(topic, partition, generation)
          else ready.add(`${topic} ${partition}`)
        }
      }
    },
    isReady: (topic: string, partition: number): boolean => ready.has(`${topic} ${partition}`),
    stop(): void {
      generation += 1
    },
  }
}

const commitEveryMs = 250

/** Batches offset commits. Records whose offset was not committed before a crash are delivered again. */
export function createOffsetCommitter(consumer: Consumer, onError: (error: unknown) => void) {
  const pending = new Map<string, Position>()
  let timer: NodeJS.Timeout | undefined

  async function flush(): Promise<void> {
    clearTimeout(timer)
    timer = undefined
    const offsets = [...pending.values()].map((position) => ({
      ...position,
      offset: String(position.offset),
    }))
    pending.clear()
    if (offsets.length > 0) await consumer.commitOffsets(offsets).catch(onError)
  }

  return {
    flush,
    add(position: Position): void {
      pending.set(`${position.topic} ${position.partition}`, position)
      timer ??= setTimeout(() => void flush(), commitEveryMs)
    },
    clear(): void {
      pending.clear()
    },
  }
}
