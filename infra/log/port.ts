export type Topic = string

/** A record to append. Records of one key keep their order and share a partition. */
export interface NewRecord {
  topic: Topic
  key: string
  value: Buffer
  headers: Record<string, string>
}

/**
 * A place in the log. `append` gives the record's own offset; end positions and group offsets name the NEXT
 * one.
 */
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

export interface ConsumeOptions {
  group: string
  topics: Topic[]
  /**
   * Called for a partition after each assignment, before its first batch: the next offset to read.
   * undefined = go on from the group's committed offset (offset 0 for a new group).
   */
  startOffset?: (topic: Topic, partition: number) => Promise<number | undefined>
  /**
   * Resolves when the batch is dealt with; the group's offset is then committed. When it throws, the same
   * records are delivered again after a back-off: nothing is skipped. One call at a time for a partition;
   * up to `partitionsConcurrently` partitions at once (default 3).
   * A number returned instead of undefined is the next offset to read: the consumer seeks there.
   */
  handleBatch: (batch: Batch) => Promise<number | undefined>
  partitionsConcurrently?: number
  maxRecords?: number
  onError?: (error: unknown, position?: Position) => void
}

export interface LogConsumer {
  /** Stops fetching, waits for running batches, commits, leaves the group. */
  stop(): Promise<void>
}

export interface TopicSpec {
  topic: Topic
  partitions: number
  retentionMs?: number
}

/**
 * The event log: what is appended is the truth, everything else is a view of it. Both adapters pass the same
 * contract test.
 */
export interface EventLog {
  /** Resolves when all the records are durable, with their positions in order; rejects with LogUnavailable. */
  append(records: NewRecord[]): Promise<Position[]>
  consume(options: ConsumeOptions): Promise<LogConsumer>
  endPositions(topic: Topic): Promise<Position[]>
  partitionOf(topic: Topic, key: string): Promise<number>
  ensureTopics(specs: TopicSpec[]): Promise<void>
  check(): Promise<void>
  close(): Promise<void>
}

export interface LogUnavailableOptions extends ErrorOptions {
  settled?: Promise<void> | undefined
}

/** The log could not be reached or did not confirm in time; the write may or may not have happened. */
export class LogUnavailable extends Error {
  /** Resolves when the write has happened or never will; absent = it is known already. */
  readonly settled: Promise<void> | undefined

  constructor(message: string, options: LogUnavailableOptions = {}) {
    super(message, options)
    this.name = 'LogUnavailable'
    this.settled = options.settled
  }
}

/** Milliseconds to wait after this many failures in a row: 100, 200, 400 ... 5000. */
export const backoffMs = (failures: number): number => Math.min(100 * 2 ** (failures - 1), 5000)
