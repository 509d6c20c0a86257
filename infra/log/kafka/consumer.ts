import { setTimeout as delay } from 'node:timers/promises'
import type { Consumer, EachBatchPayload, Kafka } from 'kafkajs'
import { within } from '../../timing.ts'
import { backoffMs, type ConsumeOptions, type LogConsumer, LogUnavailable } from '../port.ts'
import { createAccumulator, createCommits, createStartOffsets } from './accumulator.ts'

export interface KafkaConsumerDeps {
  kafka: Kafka
  prefix: string
}

const stopTimeoutMs = 5000
// So many partitions of a member wait for the handler at the same time.
const maxPartitions = 64

export async function startKafkaConsumer(
  deps: KafkaConsumerDeps,
  options: ConsumeOptions,
): Promise<LogConsumer> {
  let stopping = false
  let failures = 0
  let current = await launch(deps, options, relaunch).catch((cause) => {
    throw new LogUnavailable('the consumer could not connect', { cause })
  })

  /** kafkajs gives up for good after errors that it calls final. */
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
  const consumer = createConsumer(kafka, prefix + options.group)
  const onError = (error: unknown) => options.onError?.(error)
  const callersName = (topic: string) => topic.slice(prefix.length)
  const commits = createCommits(consumer, onError)
  const starts = createStartOffsets({ consumer, callersName, options })
  const isStopping = () => state.stopping
  const handle = createAccumulator({ consumer, commits, starts, callersName, options, isStopping })
  const running = new Set<Promise<void>>()

  consumer.on(consumer.events.REBALANCING, () => commits.flush())
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
    commits.clear()
    starts.assigned(payload.memberAssignment)
  })
  consumer.on(consumer.events.CRASH, ({ payload }) => {
    onError(payload.error)
    if (!payload.restart && !state.stopping) onDead()
  })

  async function eachBatch(payload: EachBatchPayload): Promise<void> {
    const work = handle(payload)
    running.add(work)
    await work.finally(() => running.delete(work))
  }

  try {
    await consumer.connect()
    await consumer.subscribe({ topics: options.topics.map((topic) => prefix + topic), fromBeginning: true })
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
      starts.stop()
      await Promise.allSettled(running)
      await within(commits.flush(), stopTimeoutMs).catch(onError)
      await within(consumer.disconnect(), stopTimeoutMs).catch(onError)
    },
  }
}

function createConsumer(kafka: Kafka, groupId: string): Consumer {
  return kafka.consumer({
    groupId,
    // A killed member's partitions go to the others within both together and a second. Brokers allow no less than 6000,
    // unless they are told to (group.min.session.timeout.ms).
    sessionTimeout: 6000,
    heartbeatInterval: 1500,
    minBytes: 1,
    // With several brokers, one without records delays those of the others for this long.
    maxWaitTimeInMs: 250,
    allowAutoTopicCreation: false,
    retry: { restartOnFailure: async () => true },
  })
}
