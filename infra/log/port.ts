import { withTimeout } from '../timing.ts'

export type Topic = string

export type TopicPartition = Omit<Position, 'offset'>

/** Returns `topic/partition`, the key of maps by partition. */
export const partitionName = ({ topic, partition }: TopicPartition): string =>
  `${topic}/${partition}`

/** A record to append. Records of one key keep their order and share a partition. */
export interface NewRecord {
  topic: Topic
  key: string
  value: Buffer
  headers: Record<string, string>
}

/** A record that may be a tombstone (value null), which deletes its key from a compacted topic. */
export interface KeyedRecord extends Omit<NewRecord, 'value'> {
  value: Buffer | null
}

/** A position in the log. End positions and group offsets are the NEXT offset, not that of the last record. */
export interface Position {
  topic: Topic
  partition: number
  offset: number
}

export interface LogRecord extends NewRecord, Position {
  timestamp: number
}

/** Records of one partition in offset order; offsets may have gaps. Never empty. */
export interface Batch {
  topic: Topic
  partition: number
  records: LogRecord[]
}

/** A position to resume a partition at, if not after the records of the batch. */
export interface ResumePosition extends Position {
  /** The records could not be processed. They are delivered again after a backoff; other partitions continue. */
  failed?: boolean
}

export interface ConsumeOptions {
  group: string
  topics: Topic[]
  /** Event types that `handle` needs. A hint: it may get others too. Absent = all. */
  types?: ReadonlySet<string> | undefined
  /**
   * Called after each assignment of a partition. Returns the next offset to read; undefined = the group's committed
   * offset, or 0 for a new group.
   */
  startOffset?: (topic: Topic, partition: number) => Promise<number | undefined>
  /**
   * Processes the new records of all assigned partitions: one batch per partition, one call at a time, so a slow call
   * makes the next one larger. Resolves with the positions of partitions that don't resume after their batch. If it
   * rejects, all records are delivered again after a backoff. Nothing is skipped.
   */
  handle: (batches: Batch[]) => Promise<ResumePosition[] | undefined>
  /** Default: records are delivered at once. */
  linger?: Linger | undefined
  /** Approximate number of records per call. Default 1000. */
  maxRecords?: number
  /** Stores the group's offsets, so that it resumes after a restart. Default true. */
  commitsOffsets?: boolean
  onError?: (error: unknown, position?: Position) => void
}

/**
 * Delays records of a partition by at most `ms` to deliver them together. A record of an urgent type ends the delay.
 * The embedded log delays only records that the process itself appended; Kafka delays none.
 */
export interface Linger {
  ms: number
  /** Event types. */
  urgent: ReadonlySet<string>
}

export interface LogConsumer {
  /** Stops fetching, waits for running batches, commits offsets and leaves the group. */
  stop(): Promise<void>
}

export interface TopicSpec {
  topic: Topic
  partitions: number
  retentionMs?: number
  /** Log compaction (Kafka only): records replaced by a newer one of their key leave the disk within this time. */
  compactedWithinMs?: number
  /** Maximum size of a record with key and headers. Set only for topics with large records. */
  maxRecordBytes?: number
}

/**
 * The event log, the source of truth; everything else is derived from it. Implemented on Kafka and on Postgres (the
 * embedded log). Both adapters pass the same contract test.
 */
export interface EventLog<Guard = never> {
  /** Resolves with the records' positions, in order, once all are durable. Rejects with LogUnavailable. */
  append(records: KeyedRecord[]): Promise<Position[]>
  /**
   * Appends the record and writes its guard's rows atomically. Resolves to false, with nothing written, if the guard
   * or one of another append in the same batch refuses. Absent on Kafka, and if the log was opened without guards.
   */
  appendIf?(record: NewRecord, guard: Guard): Promise<boolean>
  consume(options: ConsumeOptions): Promise<LogConsumer>
  /** Returns each partition's first record that has not expired, or its end if there is none. */
  firstPositions(topic: Topic): Promise<Position[]>
  endPositions(topic: Topic): Promise<Position[]>
  /**
   * Returns each partition's first record that was stored at that time (epoch milliseconds) or later, or its end if
   * there is none. Times of concurrent appends may be slightly out of order.
   */
  positionsSince(topic: Topic, time: number): Promise<Position[]>
  /** Returns the next offsets that the group has committed, without partitions that have none. */
  committedPositions(group: string, topics: Topic[]): Promise<Position[]>
  /** Returns a unique name of this log. A log that was recreated in the same place has another one. */
  identity(): Promise<string>
  partitionOf(topic: Topic, key: string): Promise<number>
  ensureTopics(specs: TopicSpec[]): Promise<void>
  /** Health check. Rejects if the log is unavailable or read-only. */
  check(): Promise<void>
  /** Returns a message for each setting with which the log may lose records. */
  warnings(): Promise<string[]>
  close(): Promise<void>
}

export interface LogUnavailableOptions extends ErrorOptions {
  settled?: Promise<void> | undefined
}

/** Thrown if the log could not be reached or did not confirm in time. The write may or may not have happened. */
export class LogUnavailable extends Error {
  /** Resolves once the outcome of the write is certain. undefined if it is certain already. */
  readonly settled: Promise<void> | undefined

  constructor(message: string, options: LogUnavailableOptions = {}) {
    super(message, options)
    this.name = 'LogUnavailable'
    this.settled = options.settled
  }
}

/** Waits at most `ms` until the outcome of the failed write is certain. Never rejects. */
export async function waitForOutcome(error: unknown, ms: number): Promise<void> {
  const settled = error instanceof LogUnavailable ? error.settled : undefined
  if (settled) await withTimeout(settled, ms).catch(() => {})
}

/** Returns the backoff in milliseconds after this many consecutive failures: 100, 200, 400 ... 5000. */
export const backoffMs = (failures: number): number => Math.min(100 * 2 ** (failures - 1), 5000)
