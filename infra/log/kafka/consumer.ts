import { setTimeout as delay } from 'node:timers/promises'
import type { Consumer, EachBatchPayload, Kafka } from 'kafkajs'
import { withTimeout } from '../../timing.ts'
import { backoffMs, type ConsumeOptions, type LogConsumer, LogUnavailable } from '../port.ts'
import { createAccumulator, createOffsetCommitter, createPartitionStarter } from './accumulator.ts'

export interface KafkaConsumerDeps {
  kafka: Kafka
  prefix: string
}

const stopTimeoutMs = 5000
// Maximum number of a member's partitions that wait for the handler at the same time.
const maxPartitions = 64

export async function startKafkaConsumer(
  deps: KafkaConsumerDeps,
  options: ConsumeOptions,
): Promise<LogConsumer> {
  let stopping = false
  let failures = 0
  let current = await launch(deps, options, relaunch).catch((cause) => {
    throw new LogUnavailable('the consumer failed to connect', { cause })
  })

  /** Replaces the consumer: kafkajs stops permanently after errors that it considers non-retriable. */
  async function relaunch(): Promise<void> {
    while (!stopping) {
      failures += 1
      await delay(backoffMs(failures), undefined, { ref: false })
      try {
        const next = await launch(deps, options, relaunch)
        if (stopping) await next.stop()
        current = next
        failures = 0
        return
      } catch (error) {
        options.onError?.(error)
      }
    }
  }

  return {
    async stop() {
      stopping = true
      await current.stop()
    },
  }
}

async function launch(
  { kafka, prefix }: KafkaConsumerDeps,
  options: ConsumeOptions,
  onDead: () => void,
): Promise<LogConsumer> {
  const state = { stopping: false }
  const isStopping = () => state.stopping
  const consumer = createConsumer(kafka, { groupId: prefix + options.group, isStopping })
  const onError = (error: unknown) => options.onError?.(error)
  const stripPrefix = (topic: string) => topic.slice(prefix.length)
  const committer = createOffsetCommitter(consumer, onError)
  const starter = createPartitionStarter({ consumer, stripPrefix, options })
  const handle = createAccumulator({
    consumer,
    committer,
    starter,
    stripPrefix,
    options,
    isStopping,
  })
  const running = new Set<Promise<void>>()
  let restart: PromiseWithResolvers<void> | undefined

  consumer.on(consumer.events.REBALANCING, () => committer.flush())
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
    restart?.resolve()
    committer.clear()
    starter.onAssigned(payload.memberAssignment)
  })
  consumer.on(consumer.events.CRASH, ({ payload }) => {
    onError(payload.error)
    restart?.resolve()
    restart = payload.restart ? Promise.withResolvers() : undefined
    if (!payload.restart && !state.stopping) onDead()
  })

  async function eachBatch(payload: EachBatchPayload): Promise<void> {
    const work = handle(payload)
    running.add(work)
    await work.finally(() => running.delete(work))
  }

  // Waits for a restart to finish: a consumer that disconnects during one still joins the group afterwards, and keeps
  // partitions that it doesn't read.
  async function leave(): Promise<void> {
    await restart?.promise
    // kafkajs emits GROUP_JOIN just before it can leave again.
    await new Promise(setImmediate)
    await consumer.disconnect()
  }

  try {
    await consumer.connect()
    await consumer.subscribe({
      topics: options.topics.map((topic) => prefix + topic),
      fromBeginning: true,
    })
  } catch (error) {
    await consumer.disconnect().catch(() => {})
    throw error
  }
  await consumer.run({
    autoCommit: false,
    eachBatchAutoResolve: false,
    partitionsConsumedConcurrently: maxPartitions,
    eachBatch,
  })
  return {
    async stop() {
      state.stopping = true
      starter.stop()
      await Promise.allSettled(running)
      await withTimeout(committer.flush(), stopTimeoutMs).catch(onError)
      await withTimeout(leave(), stopTimeoutMs).catch(onError)
    },
  }
}

function createConsumer(
  kafka: Kafka,
  { groupId, isStopping }: { groupId: string; isStopping: () => boolean },
): Consumer {
  return kafka.consumer({
    groupId,
    // A killed member's partitions are reassigned within the sum of both and a second. 6000 is the brokers' default
    // minimum (group.min.session.timeout.ms).
    sessionTimeout: 6000,
    heartbeatInterval: 1500,
    minBytes: 1,
    // With several brokers, one without records delays the records of the others for this long.
    maxWaitTimeInMs: 250,
    allowAutoTopicCreation: false,
    retry: { restartOnFailure: async () => !isStopping() },
  })
}
