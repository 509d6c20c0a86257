import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import {
  type Batch,
  type EventLog,
  type Linger,
  type LogConsumer,
  type Place,
  type Position,
  placeName,
  type ReadOn,
  type Topic,
} from '../log/port.ts'
import type { Logger } from '../telemetry.ts'
import { seldom } from '../timing.ts'
import { type Decoding, decodeRecords, type EventBatch, EventFailed } from './event-batch.ts'
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
  readOnAfter,
} from './round.ts'

export interface PartitionStatus {
  topic: string
  partition: number
  nextOffset: number
  /** Why the partition stands still at `nextOffset`: an event, or ten seconds of failures; null while it goes on. */
  stopped: string | null
}

export interface EventConsumerOptions extends Decoding {
  /** Who consumes, for log lines: `projection sessions`. */
  who: string
  group: string
  topics: Topic[]
  log: EventLog
  logger: Logger
  maxRecords?: number
  /** Milliseconds from any beginning. Default: that of the process. */
  clock?: () => number
  /** Milliseconds to wait after a batch, so that the next is larger: for what nobody waits for. Absent = none. */
  gatherMs?: number | undefined
  /** As of the log. */
  linger?: Linger | undefined
  /** As of the log: who may write nothing to it stores its offsets elsewhere. */
  keepsNoOffsets?: boolean
  /** Told once where an event stops its partition, with what is wrong. Default: a line in the log. */
  onStopped?: ((at: Position, error: unknown) => void) | undefined
  /** Told how many records expired before they were read, beside a line in the log. */
  onExpired?: ((records: number) => void) | undefined
  /**
   * Returns the stored next offset of a partition, and moves it to `first` where that is later: the first record that
   * still exists.
   */
  startOffset?: (first: Position) => Promise<number>
  /**
   * Applies all of the batches or none, and returns where each partition goes on: behind its end, or where the stored
   * offset says. Throws EventFailed when an event is at fault; any other error is tried again.
   */
  apply: (batches: EventBatch[]) => Promise<Position[]>
}

export interface EventConsumer {
  status(): PartitionStatus[]
  /** Another process got past an offset, so a partition that is stopped before it here is stopped no longer. */
  passed(next: Position): void
  stop(): Promise<void>
}

/**
 * Consumes events: what has come to all partitions is applied together, in rounds (`round.ts`). A partition with an
 * event that cannot be dealt with stops there and the others go on (`partition-mode.ts`). The event is tried again, and
 * never skipped.
 */
export async function consumeEvents(options: EventConsumerOptions): Promise<EventConsumer> {
  const { log, group, topics, types, maxRecords, gatherMs } = options
  const { clock = () => performance.now() } = options
  const partitions = createPartitions(options, clock)
  const { startOffset, passExpired } = createStarts(options, { partitions, clock })
  const stopping = new AbortController()

  async function handle(batches: Batch[]): Promise<ReadOn[]> {
    const { decoded, results } = await decodeAll(batches)
    const readOn = new Map(results.map((result) => [placeName(result.at), readOnAfter(result)]))
    for (const result of await runRound(decoded))
      readOn.set(placeName(result.at), readOnAfter(result))
    if (gatherMs) await delay(gatherMs, undefined, { signal: stopping.signal }).catch(() => {})
    return [...readOn.values()].filter((position) => position !== undefined)
  }

  /** A partition that cannot be decoded for now fails alone: nobody may be there to say whether a record is skipped. */
  async function decodeAll(
    batches: Batch[],
  ): Promise<{ decoded: PendingBatch[]; results: Result[] }> {
    const decoded: PendingBatch[] = []
    const results: Result[] = []
    const decodeOne = async (batch: Batch) => {
      try {
        await passExpired(batch)
        decoded.push(await decodeBatch(options, { batch, expected: partitions.nextOffset(batch) }))
      } catch (error) {
        results.push({ kind: 'failed', at: startOf(batch), error })
      }
    }
    await Promise.all(batches.map(decodeOne))
    partitions.note(results)
    return { decoded, results }
  }

  async function runRound(decoded: PendingBatch[]): Promise<Result[]> {
    const all: Result[] = []
    let attempts = planRound(decoded, partitions.failuresOf)
    for (let first = attempts[0]; first; first = attempts[0]) {
      const round = nextRound(attempts, await outcomeOf(options.apply(batchesOf(first))))
      partitions.note(round.results)
      all.push(...round.results)
      attempts = round.attempts
    }
    return all
  }

  const consumer: LogConsumer = await log.consume({
    group,
    topics,
    types,
    linger: options.linger,
    ...(maxRecords === undefined ? {} : { maxRecords }),
    keepsNoOffsets: options.keepsNoOffsets ?? false,
    startOffset,
    handle,
    onError: partitions.warn,
  })
  return {
    status: partitions.status,
    passed(next) {
      if (next.offset > partitions.nextOffset(next)) partitions.change(next, { kind: 'passed' })
    },
    stop() {
      stopping.abort()
      return consumer.stop()
    },
  }
}

/** Starts partitions, and passes over records that expired before they were read: an error line and a count name them. */
function createStarts(
  { who, log, topics, logger, ...options }: EventConsumerOptions,
  { partitions, clock }: { partitions: ReturnType<typeof createPartitions>; clock: () => number },
) {
  const readFirsts = seldom(
    1000,
    () => Promise.all(topics.map((topic) => log.firstPositions(topic))),
    clock,
  )

  async function firstOf({ topic, partition }: Place): Promise<Position> {
    const firsts = (await readFirsts()).flat()
    const first = firsts.find((at) => at.topic === topic && at.partition === partition)
    return first ?? { topic, partition, offset: 0 }
  }

  /** Starts at the stored offset, or where that is earlier at the first record that still exists. */
  async function startAt(first: Position): Promise<number | undefined> {
    const { offset: to, ...place } = first
    const from = await options.startOffset?.(first)
    const next = from === undefined ? undefined : Math.max(from, to)
    partitions.change(place, { kind: 'started' }, next)
    if (from === undefined || from >= to) return next
    const records = to - from
    logger.error(
      { consumer: who, ...place, from, to, records },
      `records expired before ${who} read them`,
    )
    options.onExpired?.(records)
    return next
  }

  return {
    async startOffset(topic: Topic, partition: number): Promise<number | undefined> {
      const place = partitions.add({ topic, partition })
      try {
        return await startAt(await firstOf(place))
      } catch (error) {
        partitions.change(place, { kind: 'notStarted', error })
        throw error
      }
    },
    // Offsets have gaps for other reasons, too, so the first record that still exists decides what has expired.
    async passExpired(batch: Batch): Promise<void> {
      const next = partitions.nextOffset(batch)
      const { offset: start } = startOf(batch)
      if (!options.startOffset || start <= next) return
      const first = await firstOf(batch)
      const offset = Math.min(start, first.offset)
      if (offset > next) await startAt({ ...first, offset })
    },
  }
}

interface Progress extends Place {
  nextOffset: number
  mode: PartitionMode
}

/** How far each partition is, and in which mode. */
function createPartitions(
  {
    who,
    logger,
    onStopped = loggingStops({ who, logger }),
  }: Pick<EventConsumerOptions, 'who' | 'logger' | 'onStopped'>,
  clock: () => number,
) {
  const known = new Map<string, Progress>()

  function progressOf({ topic, partition }: Place): Progress {
    const name = placeName({ topic, partition })
    const progress = known.get(name) ?? { topic, partition, nextOffset: 0, mode: reading }
    known.set(name, progress)
    return progress
  }

  function change(place: Place, change: PartitionChange, nextOffset?: number): void {
    const progress = progressOf(place)
    progress.mode = nextMode(progress.mode, change)
    progress.nextOffset = nextOffset ?? progress.nextOffset
  }

  function warn(err: unknown, position?: Position): void {
    logger.warn({ err, consumer: who, position }, `${who} failed; the records will be read again`)
  }

  function stopAt(at: Position, error: unknown): void {
    // It is tried again and again, and said once.
    if (progressOf(at).mode.name !== 'stopped') onStopped(at, error)
    change(at, { kind: 'stopped', error }, at.offset)
  }

  function noteOne(result: Result): void {
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
      case 'left':
        break
      default:
        result satisfies never
    }
  }

  return {
    add: progressOf,
    change,
    warn,
    nextOffset: (place: Place): number => progressOf(place).nextOffset,
    failuresOf(place: Place): number | undefined {
      const { mode } = progressOf(place)
      return mode.name === 'reading' ? undefined : failureCount(mode)
    },
    note(results: Result[]): void {
      for (const result of results) noteOne(result)
      // What failed together failed for one reason.
      const errors = new Map(
        results.flatMap((one) => (one.kind === 'failed' ? [[one.error, one.at]] : [])),
      )
      for (const [error, at] of errors) warn(error, at)
    },
    status: (): PartitionStatus[] =>
      [...known.values()].map(({ mode, ...progress }) => ({
        ...progress,
        stopped: stoppedReason(mode, clock()),
      })),
  }
}

const loggingStops =
  ({ who, logger }: Pick<EventConsumerOptions, 'who' | 'logger'>) =>
  (at: Position, error: unknown): void => {
    const message = `${who} stands still at ${at.topic}/${at.partition} offset ${at.offset}`
    logger.error({ err: new Error(message, { cause: error }), consumer: who, ...at }, message)
  }

async function decodeBatch(
  options: Decoding,
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
  assert(first, 'a batch of the log is never empty')
  return { topic, partition, offset: first.offset }
}

const outcomeOf = (applying: Promise<Position[]>): Promise<Outcome> =>
  applying.then(
    (next) => ({ kind: 'applied', next }),
    (error) =>
      error instanceof EventFailed
        ? { kind: 'eventFailed', cause: error.cause }
        : { kind: 'failed', error },
  )
