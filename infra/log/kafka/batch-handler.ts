import type { Consumer, EachBatchPayload, KafkaMessage } from 'kafkajs'
import { backoffMs, type ConsumeOptions, type LogRecord, type Position } from '../port.ts'

export interface BatchDeps {
  consumer: Consumer
  commits: Commits
  starts: StartOffsets
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

export interface StartOffsetsOptions {
  consumer: Consumer
  callersName: (topic: string) => string
  options: ConsumeOptions
}

/**
 * Finds where to start after each assignment. kafkajs does not wait for any hook. So new partitions are
 * paused in its event for an assignment, before the first fetch, until their offset is known.
 */
export function createStartOffsets({ consumer, callersName, options }: StartOffsetsOptions) {
  const { startOffset, onError } = options
  const ready = new Set<string>()
  let generation = 0

  async function start(topic: string, partition: number, mine: number, failures = 0): Promise<void> {
    try {
      const offset = await startOffset?.(callersName(topic), partition)
      if (mine !== generation) return
      if (offset !== undefined) consumer.seek({ topic, partition, offset: String(offset) })
      ready.add(`${topic} ${partition}`)
      consumer.resume([{ topic, partitions: [partition] }])
    } catch (error) {
      onError?.(error, { topic: callersName(topic), partition, offset: 0 })
      const again = () => mine === generation && void start(topic, partition, mine, failures + 1)
      setTimeout(again, backoffMs(failures + 1)).unref()
    }
  }

  return {
    assigned(assignment: Record<string, number[]>): void {
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

export type StartOffsets = ReturnType<typeof createStartOffsets>

const commitEveryMs = 250

/** Commits handled offsets together. What a crash leaves uncommitted is delivered again. */
export function createCommits(consumer: Consumer, onError: (error: unknown) => void) {
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

export type Commits = ReturnType<typeof createCommits>
