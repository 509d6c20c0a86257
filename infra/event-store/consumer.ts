import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import {
  type Batch,
  type EventLog,
  type Linger,
  type LogConsumer,
  type Position,
  partitionName,
  type ResumePosition,
  type Topic,
  type TopicPartition,
} from '../log/port.ts'
import type { Logger } from '../telemetry.ts'
import { cachedFor } from '../timing.ts'
import { type DecodeOptions, decodeRecords, type EventBatch, EventFailed } from './event-batch.ts'
import {
  failureCount,
  nextMode,
  type PartitionChange,
  type PartitionMode,
  reading,
  stoppedReason,
} from './partition-mode.ts'
import {
  batchesOf,
  nextRound,
  type Outcome,
  type PendingBatch,
  planRound,
  type Result,
  resumeAfter,
} from './round.ts'

export interface PartitionStatus {
  topic: string
  partition: number
  nextOffset: number
  /** Why the partition is stuck at `nextOffset`: a bad event, or ten seconds of failures. Null while it progresses. */
  stopped: string | null
}

export interface EventConsumerOptions extends DecodeOptions {
  /** The name in log lines, such as `projection sessions`. */
  consumerName: string
  group: string
  topics: Topic[]
  log: EventLog
  logger: Logger
  maxRecords?: number
  /** Monotonic clock in milliseconds. Default: `performance.now`. */
  clock?: () => number
  /**
   * Pause in milliseconds after each batch, which makes the next one larger. For consumers where latency doesn't
   * matter.
   */
  batchDelayMs?: number | undefined
  /** Passed to `EventLog.consume`. */
  linger?: Linger | undefined
  /** Passed to `EventLog.consume`. False for a consumer without write access, which stores its offsets elsewhere. */
  commitsOffsets?: boolean
  /** Called once when a bad event stops its partition. Default: logs an error. */
  onStopped?: ((at: Position, error: unknown) => void) | undefined
  /** Called with the number of records that expired before they were read; also logged. */
  onExpired?: ((records: number) => void) | undefined
  /** Returns the partition's stored next offset, and raises it to `first`, the first record that still exists. */
  startOffset?: (first: Position) => Promise<number>
  /**
   * Applies all of the batches or none, and returns each partition's next offset: the batch's end, or the stored offset
   * if Postgres lost commits. Throws EventFailed if an event is the cause; any other error is retried.
   */
  apply: (batches: EventBatch[]) => Promise<Position[]>
}

export interface EventConsumer {
  status(): PartitionStatus[]
  /** Reports that another process has advanced a partition. If it was stopped before that offset here, it resumes. */
  notifyAdvanced(next: Position): void
  stop(): Promise<void>
}

/**
 * Consumes events until stopped. Records of all partitions are applied together, in rounds (`round.ts`). A partition
 * with an event that can't be processed stops there and the others go on (`partition-mode.ts`); the event is retried,
 * never skipped.
 */
export async function consumeEvents(options: EventConsumerOptions): Promise<EventConsumer> {
  const { log, group, topics, types, maxRecords, batchDelayMs } = options
  const { clock = () => performance.now() } = options
  const partitions = createPartitions(options, clock)
  const { startOffset, skipExpired } = createStarter(options, { partitions, clock })
  const stopping = new AbortController()

  async function handle(batches: Batch[]): Promise<ResumePosition[]> {
    const { decoded, results } = await decodeAll(batches)
    const resume = new Map(results.map((result) => [partitionName(result.at), resumeAfter(result)]))
    for (const result of await runRound(decoded))
      resume.set(partitionName(result.at), resumeAfter(result))
    if (batchDelayMs)
      await delay(batchDelayMs, undefined, { signal: stopping.signal }).catch(() => {})
    return [...resume.values()].filter((position) => position !== undefined)
  }

  /** Decodes the batches. A failure, such as of a key lookup, only affects its own partition. */
  async function decodeAll(
    batches: Batch[],
  ): Promise<{ decoded: PendingBatch[]; results: Result[] }> {
    const decoded: PendingBatch[] = []
    const results: Result[] = []
    const decodeOne = async (batch: Batch) => {
      try {
        await skipExpired(batch)
        decoded.push(await decodeBatch(options, { batch, expected: partitions.nextOffset(batch) }))
      } catch (error) {
        results.push({ kind: 'failed', at: startOf(batch), error })
      }
    }
    await Promise.all(batches.map(decodeOne))
    partitions.record(results)
    return { decoded, results }
  }

  async function runRound(decoded: PendingBatch[]): Promise<Result[]> {
    const results: Result[] = []
    let attempts = planRound(decoded, partitions.failuresOf)
    for (let first = attempts[0]; first; first = attempts[0]) {
      const round = nextRound(attempts, await settle(options.apply(batchesOf(first))))
      partitions.record(round.results)
      results.push(...round.results)
      attempts = round.attempts
    }
    return results
  }

  const consumer: LogConsumer = await log.consume({
    group,
    topics,
    types,
    linger: options.linger,
    ...(maxRecords === undefined ? {} : { maxRecords }),
    commitsOffsets: options.commitsOffsets ?? true,
    startOffset,
    handle,
    onError: partitions.warn,
  })
  return {
    status: partitions.status,
    notifyAdvanced(next) {
      if (next.offset > partitions.nextOffset(next)) partitions.change(next, { kind: 'passed' })
    },
    stop() {
      stopping.abort()
      return consumer.stop()
    },
  }
}

/** Finds the partitions' start offsets, and reports records that expired before they were read. */
function createStarter(
  { consumerName, log, topics, logger, ...options }: EventConsumerOptions,
  { partitions, clock }: { partitions: ReturnType<typeof createPartitions>; clock: () => number },
) {
  const readFirstPositions = cachedFor(
    1000,
    () => Promise.all(topics.map((topic) => log.firstPositions(topic))),
    clock,
  )

  async function firstPositionOf({ topic, partition }: TopicPartition): Promise<Position> {
    const starts = (await readFirstPositions()).flat()
    const first = starts.find((at) => at.topic === topic && at.partition === partition)
    return first ?? { topic, partition, offset: 0 }
  }

  /** Starts at the stored offset or at the first record that still exists, whichever is later. */
  async function startAt(first: Position): Promise<number | undefined> {
    const { offset: to, ...at } = first
    const from = await options.startOffset?.(first)
    const next = from === undefined ? undefined : Math.max(from, to)
    partitions.change(at, { kind: 'started' }, next)
    if (from === undefined || from >= to) return next
    const records = to - from
    logger.error(
      { consumer: consumerName, ...at, from, to, records },
      `records expired before ${consumerName} read them`,
    )
    options.onExpired?.(records)
    return next
  }

  return {
    async startOffset(topic: Topic, partition: number): Promise<number | undefined> {
      const at = partitions.add({ topic, partition })
      try {
        return await startAt(await firstPositionOf(at))
      } catch (error) {
        partitions.change(at, { kind: 'notStarted', error })
        throw error
      }
    },
    // A gap in the offsets doesn't prove expiry, so compare with the first record that still exists.
    async skipExpired(batch: Batch): Promise<void> {
      const next = partitions.nextOffset(batch)
      const { offset: start } = startOf(batch)
      if (!options.startOffset || start <= next) return
      const first = await firstPositionOf(batch)
      const offset = Math.min(start, first.offset)
      if (offset > next) await startAt({ ...first, offset })
    },
  }
}

interface Progress extends TopicPartition {
  nextOffset: number
  mode: PartitionMode
}

/** Tracks each partition's next offset and mode. */
function createPartitions(
  {
    consumerName,
    logger,
    onStopped = logStop({ consumerName, logger }),
  }: Pick<EventConsumerOptions, 'consumerName' | 'logger' | 'onStopped'>,
  clock: () => number,
) {
  const partitions = new Map<string, Progress>()

  function progressOf({ topic, partition }: TopicPartition): Progress {
    const name = partitionName({ topic, partition })
    const progress = partitions.get(name) ?? { topic, partition, nextOffset: 0, mode: reading }
    partitions.set(name, progress)
    return progress
  }

  function change(at: TopicPartition, change: PartitionChange, nextOffset?: number): void {
    const progress = progressOf(at)
    progress.mode = nextMode(progress.mode, change)
    progress.nextOffset = nextOffset ?? progress.nextOffset
  }

  function warn(err: unknown, position?: Position): void {
    logger.warn(
      { err, consumer: consumerName, position },
      `${consumerName} failed; retrying the records`,
    )
  }

  function stopAt(at: Position, error: unknown): void {
    // Reported once, although the event is retried forever.
    if (progressOf(at).mode.name !== 'stopped') onStopped(at, error)
    change(at, { kind: 'stopped', error }, at.offset)
  }

  function recordResult(result: Result): void {
    switch (result.kind) {
      case 'applied':
        change(result.at, { kind: 'applied' }, result.at.offset)
        break
      case 'stopped':
        stopAt(result.at, result.error)
        break
      case 'failed':
        change(result.at, { kind: 'failed', error: result.error, now: clock() })
        break
      case 'untried':
        break
      default:
        result satisfies never
    }
  }

  return {
    add: progressOf,
    change,
    warn,
    nextOffset: (at: TopicPartition): number => progressOf(at).nextOffset,
    failuresOf(at: TopicPartition): number | undefined {
      const { mode } = progressOf(at)
      return mode.name === 'reading' ? undefined : failureCount(mode)
    },
    record(results: Result[]): void {
      for (const result of results) recordResult(result)
      // Partitions that failed together share an error, which is logged once.
      const errors = new Map(
        results.flatMap((result) => (result.kind === 'failed' ? [[result.error, result.at]] : [])),
      )
      for (const [error, at] of errors) warn(error, at)
    },
    status: (): PartitionStatus[] =>
      [...partitions.values()].map(({ mode, ...progress }) => ({
        ...progress,
        stopped: stoppedReason(mode, clock()),
      })),
  }
}

const logStop =
  ({ consumerName, logger }: Pick<EventConsumerOptions, 'consumerName' | 'logger'>) =>
  (at: Position, error: unknown): void => {
    const message = `${consumerName} is stuck at ${at.topic}/${at.partition} offset ${at.offset}`
    logger.error(
      { err: new Error(message, { cause: error }), consumer: consumerName, ...at },
      message,
    )
  }

async function decodeBatch(
  options: DecodeOptions,
  { batch, expected }: { batch: Batch; expected: number },
): Promise<PendingBatch> {
  const { topic, partition, records } = batch
  const timeBefore = (offset: number) =>
    records.findLast((record) => record.offset < offset)?.timestamp ?? 0
  const { offset: start } = startOf(batch)
  return {
    topic,
    partition,
    start,
    ...(await decodeRecords(options, records)),
    expected,
    timeBefore,
  }
}

function startOf({ topic, partition, records: [first] }: Batch): Position {
  assert(first, 'the log never delivers an empty batch')
  return { topic, partition, offset: first.offset }
}

const settle = (applying: Promise<Position[]>): Promise<Outcome> =>
  applying.then(
    (next) => ({ kind: 'applied', next }),
    (error) =>
      error instanceof EventFailed
        ? { kind: 'eventFailed', cause: error.cause }
        : { kind: 'failed', error },
  )
