import { backoffMs } from '../backoff.ts'
import type { Batch, ConsumeOptions, LogRecord, Position } from '../port.ts'
import type { TopicPartition } from './assignment.ts'

/** A partition that this consumer holds the lock of. */
export interface Owned extends TopicPartition {
  /** The next offset to read; undefined until the start offset is known. */
  next: number | undefined
  /** Read, not yet handed to the handler. */
  records: LogRecord[]
  running: Promise<void> | undefined
  /** To be given up as soon as its handler is done. */
  revoked: boolean
  failures: number
  /** Not touched before this time (performance.now), after a failure. */
  notBefore: number
  /** Handled up to here, not committed yet. */
  uncommitted: number | undefined
}

export const newlyOwned = ({ topic, partition }: TopicPartition): Owned => ({
  topic,
  partition,
  next: undefined,
  records: [],
  running: undefined,
  revoked: false,
  failures: 0,
  notBefore: 0,
  uncommitted: undefined,
})

export const isIdle = (owned: Owned, now: number): boolean =>
  !owned.running && !owned.revoked && owned.records.length === 0 && owned.notBefore <= now

export function backOff(owned: Owned): void {
  owned.failures += 1
  owned.notBefore = performance.now() + backoffMs(owned.failures)
}

/** Hands the records read to the handler; on failure they are read again after a back-off. Never rejects. */
export async function handle(owned: Owned, { handleBatch, onError }: ConsumeOptions): Promise<void> {
  const { topic, partition, records } = owned
  const first = records[0]
  const last = records.at(-1)
  if (!first || !last) return
  owned.records = []
  try {
    const batch: Batch = { topic, partition, records }
    owned.next = (await handleBatch(batch)) ?? last.offset + 1
    owned.uncommitted = owned.next
    owned.failures = 0
  } catch (error) {
    owned.next = first.offset
    backOff(owned)
    onError?.(error, { topic, partition, offset: first.offset })
  }
}

/** Decides where to start reading: the caller's choice, else the group's committed offset, else the beginning. */
export async function findStart(owned: Owned, committed: Position[], options: ConsumeOptions): Promise<void> {
  const { topic, partition } = owned
  try {
    const chosen = await options.startOffset?.(topic, partition)
    const known = committed.find((p) => p.topic === topic && p.partition === partition)
    owned.next = chosen ?? known?.offset ?? 0
    owned.failures = 0
  } catch (error) {
    backOff(owned)
    options.onError?.(error, { topic, partition, offset: 0 })
  }
}
