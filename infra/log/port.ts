import { within } from '../timing.ts'

export type Topic = string

export type Place = Omit<Position, 'offset'>

export const placeName = ({ topic, partition }: Place): string => `${topic}/${partition}`

/** A record to append. Records of one key keep their order and share a partition. */
export interface NewRecord {
  topic: Topic
  key: string
  value: Buffer
  headers: Record<string, string>
}

/** What a compacted topic takes, too: null = nothing is of the key any more. */
export interface KeyedRecord extends Omit<NewRecord, 'value'> {
  value: Buffer | null
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

/** Where a partition is read on, when that is not behind the records that were handed over. */
export interface ReadOn extends Position {
  /** Its records could not be dealt with: they come again after a back-off, and the other partitions go on. */
  failed?: boolean
}

export interface ConsumeOptions {
  group: string
  topics: Topic[]
  /** Types of the events that `handle` looks at, which gets others too. Absent = all. */
  types?: ReadonlySet<string> | undefined
  /**
   * Called for a partition after each assignment, before its first batch: the next offset to read.
   * undefined = go on from the group's committed offset (offset 0 for a new group).
   */
  startOffset?: (topic: Topic, partition: number) => Promise<number | undefined>
  /**
   * Gets what has come to all partitions of this member since the last call, one batch for each partition, and
   * one call at a time. So a slow call makes the next one larger. When it resolves, the group's offsets are
   * committed, except for the partitions in its answer. When it throws, all the records come again after a
   * back-off: nothing is skipped.
   */
  handle: (batches: Batch[]) => Promise<ReadOn[] | undefined>
  /** Absent = no record waits for another. */
  linger?: Linger | undefined
  /** About how many records one call gets. Default 1000. */
  maxRecords?: number
  /** Nobody goes on from where it ended: the group's offsets are not stored. Default: they are. */
  keepsNoOffsets?: boolean
  onError?: (error: unknown, position?: Position) => void
}

/**
 * A record may wait for others of its partition, so that they are handed over together: at most `ms`, and not once there
 * is a record of an urgent type. On the embedded log those wait that the process itself appended, and on Kafka none.
 */
export interface Linger {
  ms: number
  /** Types of events. */
  urgent: ReadonlySet<string>
}

export interface LogConsumer {
  /** Stops fetching, waits for running batches, commits, leaves the group. */
  stop(): Promise<void>
}

export interface TopicSpec {
  topic: Topic
  partitions: number
  retentionMs?: number
  /** Only the newest record of a key is kept, and what it replaces is on no disk after so long. The embedded log has none. */
  compactedWithinMs?: number
  /** Bytes that one record may have, with key and headers. Absent = few. */
  largestRecordBytes?: number
}

/**
 * The event log: what is appended is the truth, everything else is a view of it. Both adapters pass the same
 * contract test.
 */
export interface EventLog<Guard = never> {
  /** Resolves when all the records are durable, with their positions in order; rejects with LogUnavailable. */
  append(records: KeyedRecord[]): Promise<Position[]>
  /**
   * Appends the record together with rows that its guard writes. Resolves to false where they could not be written, or
   * those of another append in the same statement could not: then neither the rows nor the record are there. Absent
   * where the log is in no database, or was opened without guards.
   */
  appendIf?(record: NewRecord, guard: Guard): Promise<boolean>
  consume(options: ConsumeOptions): Promise<LogConsumer>
  /** The first record of each partition that the retention has left, or where the next will be. */
  firstPositions(topic: Topic): Promise<Position[]>
  endPositions(topic: Topic): Promise<Position[]>
  /**
   * The first record of each partition that was stored at that time (epoch milliseconds) or later, or where the next will
   * be. Records that are appended at once may be a little out of order.
   */
  positionsSince(topic: Topic, time: number): Promise<Position[]>
  /** The next offsets that the group has committed; none where it has not. */
  committed(group: string, topics: Topic[]): Promise<Position[]>
  /** Another log has another one, also a log that was made anew in the same place. */
  identity(): Promise<string>
  partitionOf(topic: Topic, key: string): Promise<number>
  ensureTopics(specs: TopicSpec[]): Promise<void>
  check(): Promise<void>
  /** What may lose records although it works, in words. */
  warnings(): Promise<string[]>
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

/** Waits until it is known whether the failed write has happened, for at most `ms`. */
export async function outcomeOf(error: unknown, ms: number): Promise<void> {
  const settled = error instanceof LogUnavailable ? error.settled : undefined
  if (settled) await within(settled, ms).catch(() => {})
}

/** Milliseconds to wait after this many failures in a row: 100, 200, 400 ... 5000. */
export const backoffMs = (failures: number): number => Math.min(100 * 2 ** (failures - 1), 5000)
