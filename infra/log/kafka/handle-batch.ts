import type { Consumer, EachBatchPayload, KafkaMessage } from 'kafkajs'
import { backoffMs } from '../backoff.ts'
import type { ConsumeOptions, LogRecord } from '../port.ts'
import type { Commits } from './commits.ts'
import type { Starts } from './starts.ts'

export interface BatchDeps {
  consumer: Consumer
  commits: Commits
  starts: Starts
  callersName: (topic: string) => string
  options: ConsumeOptions
  isStopping: () => boolean
}

const heartbeatEveryMs = 1000

/** kafkajs's eachBatch: hands the records over in pieces of `maxRecords`, and never past a failure. */
export function createBatchHandler(deps: BatchDeps) {
  const { consumer, commits, starts, callersName, options, isStopping } = deps
  const { maxRecords = 500, handleBatch, onError } = options
  const failures = new Map<string, number>()

  async function eachBatch(payload: EachBatchPayload): Promise<void> {
    const { topic, partition, messages } = payload.batch
    // A handler may take longer than the group waits for a sign of life.
    const beat = setInterval(() => payload.heartbeat().catch(() => {}), heartbeatEveryMs)
    try {
      for (let at = 0; at < messages.length; at += maxRecords) {
        const goesOn = !isStopping() && payload.isRunning() && !payload.isStale()
        if (!goesOn || !starts.isReady(topic, partition)) return
        const records = messages
          .slice(at, at + maxRecords)
          .map((message) => toRecord(message, topic, partition))
        if (!(await handle(payload, records))) return
      }
    } finally {
      clearInterval(beat)
    }
  }

  /** Whether the records after these are to be handled next. */
  async function handle(payload: EachBatchPayload, records: LogRecord[]): Promise<boolean> {
    const { topic, partition } = payload.batch
    const first = records[0]
    const last = records.at(-1)
    if (!first || !last) return true
    try {
      const chosen = await handleBatch({ topic: callersName(topic), partition, records })
      failures.delete(`${topic} ${partition}`)
      commits.add({ topic, partition, offset: chosen ?? last.offset + 1 })
      if (chosen === undefined) payload.resolveOffset(String(last.offset))
      else consumer.seek({ topic, partition, offset: String(chosen) })
      return chosen === undefined
    } catch (error) {
      onError?.(error, { topic: callersName(topic), partition, offset: first.offset })
      retryLater(payload, first.offset)
      return false
    }
  }

  /** Pauses only this partition: the others go on, and the group does not see a failure. */
  function retryLater(payload: EachBatchPayload, offset: number): void {
    const { topic, partition } = payload.batch
    const count = (failures.get(`${topic} ${partition}`) ?? 0) + 1
    failures.set(`${topic} ${partition}`, count)
    consumer.seek({ topic, partition, offset: String(offset) })
    const resume = payload.pause()
    setTimeout(() => !isStopping() && resume(), backoffMs(count)).unref()
  }

  function toRecord(message: KafkaMessage, topic: string, partition: number): LogRecord {
    return {
      topic: callersName(topic),
      partition,
      offset: Number(message.offset),
      key: message.key?.toString() ?? '',
      value: message.value ?? Buffer.alloc(0),
      headers: Object.fromEntries(Object.entries(message.headers ?? {}).map(([k, v]) => [k, String(v)])),
      timestamp: Number(message.timestamp),
    }
  }

  return eachBatch
}
