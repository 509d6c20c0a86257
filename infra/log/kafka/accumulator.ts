import type { Consumer, EachBatchPayload, KafkaMessage } from 'kafkajs'
import { handOver } from '../hand-over.ts'
import {
  type Batch,
  backoffMs,
  type ConsumeOptions,
  type LogRecord,
  type Position,
  placeName,
  type ReadOn,
} from '../port.ts'

export interface AccumulatorDeps {
  consumer: Consumer
  commits: ReturnType<typeof createCommits>
  starts: ReturnType<typeof createStartOffsets>
  callersName: (topic: string) => string
  options: ConsumeOptions
  isStopping: () => boolean
}

interface Fetched {
  payload: EachBatchPayload
  messages: KafkaMessage[]
  done: () => void
}

interface Piece {
  fetched: Fetched
  batch: Batch
}

const heartbeatEveryMs = 1000
const defaultMaxRecords = 1000

/**
 * kafkajs's eachBatch, called for each partition at once. All of them wait in one place, and what waits is handed over
 * together, in pieces of about `maxRecords`, and never past a failure.
 */
export function createAccumulator(deps: AccumulatorDeps) {
  const { consumer, commits, starts, callersName, options, isStopping } = deps
  const failures = new Map<string, number>()
  let waiting: Fetched[] = []
  let isDraining = false

  async function eachBatch(payload: EachBatchPayload): Promise<void> {
    const { promise, resolve: done } = Promise.withResolvers<void>()
    waiting.push({ payload, messages: payload.batch.messages, done })
    void drain()
    await withHeartbeat(payload, promise)
  }

  async function drain(): Promise<void> {
    if (isDraining) return
    isDraining = true
    // The partitions of one fetch come within the same turn of the event loop.
    await new Promise(setImmediate)
    while (waiting.length > 0) await deal(take())
    isDraining = false
  }

  function take(): Piece[] {
    const pieces: Piece[] = []
    let room = options.maxRecords ?? defaultMaxRecords
    for (const fetched of waiting) {
      if (!goesOn(fetched)) fetched.done()
      else if (room > 0) {
        const batch = batchOf(fetched, { topic: callersName(fetched.payload.batch.topic), room })
        room -= batch.records.length
        pieces.push({ fetched, batch })
      }
    }
    const taken = new Set(pieces.map(({ fetched }) => fetched))
    waiting = waiting.filter((fetched) => goesOn(fetched) && !taken.has(fetched))
    return pieces
  }

  function goesOn({ payload, messages }: Fetched): boolean {
    const { topic, partition } = payload.batch
    if (isStopping() || messages.length === 0 || !starts.isReady(topic, partition)) return false
    return payload.isRunning() && !payload.isStale()
  }

  async function deal(pieces: Piece[]): Promise<void> {
    if (pieces.length === 0) return
    const batches = pieces.map(({ batch }) => batch)
    const readOn = await handOver(options, batches)
    for (const piece of pieces) settle(piece, readOn.get(placeName(piece.batch)))
  }

  function settle({ fetched, batch }: Piece, chosen: ReadOn | undefined): void {
    const { topic, partition } = fetched.payload.batch
    const last = batch.records.at(-1)?.offset ?? 0
    if (!options.keepsNoOffsets)
      commits.add({ topic, partition, offset: chosen?.offset ?? last + 1 })
    if (chosen) {
      consumer.seek({ topic, partition, offset: String(chosen.offset) })
      if (chosen.failed) retryLater(fetched.payload)
      fetched.done()
      return
    }
    failures.delete(placeName(fetched.payload.batch))
    fetched.payload.resolveOffset(String(last))
    const messages = fetched.messages.slice(batch.records.length)
    if (messages.length > 0) waiting.push({ ...fetched, messages })
    else fetched.done()
  }

  // Pauses only this partition: the others go on, and the group does not see a failure.
  function retryLater(payload: EachBatchPayload): void {
    const place = placeName(payload.batch)
    const count = (failures.get(place) ?? 0) + 1
    failures.set(place, count)
    const resume = payload.pause()
    setTimeout(() => !isStopping() && resume(), backoffMs(count)).unref()
  }

  return eachBatch
}

// A handler may take longer than the group waits for a sign of life.
function withHeartbeat(payload: EachBatchPayload, work: Promise<void>): Promise<void> {
  const beat = setInterval(() => payload.heartbeat().catch(() => {}), heartbeatEveryMs)
  return work.finally(() => clearInterval(beat))
}

function batchOf(
  { payload, messages }: Fetched,
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

  async function start(
    topic: string,
    partition: number,
    mine: number,
    failures = 0,
  ): Promise<void> {
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
