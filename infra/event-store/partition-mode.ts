import assert from 'node:assert/strict'
import { errorMessage } from '../thrown.ts'

/*
 * The state machine of a consumer's partition.
 *
 *    not started ◀────────────┐ no offset to start at
 *         │ started           │
 *         ▼                   │
 *   ┌───────────┐ failed ┌────┴────┐
 *   │  reading  │ ─────▶ │ failing │ ◀┐ failed
 *   │           │ ◀───── │         │ ─┘
 *   └───┬───────┘ applied└────┬────┘
 *       │   ▲                 │
 *  stopped  │ applied, passed │ stopped
 *       ▼   │                 ▼
 *   ┌─────────────────────────────┐
 *   │           stopped           │ ◀─ failed, or stopped again
 *   └─────────────────────────────┘
 */
export type PartitionMode =
  /** Its records are applied together with those of all other reading partitions. */
  | { name: 'reading' }
  /**
   * The last attempt failed for a reason other than an event, such as an unavailable database. The partition is retried
   * in a transaction of its own, so it doesn't block the others, and goes back to reading when an attempt succeeds.
   */
  | { name: 'failing'; failures: Failures }
  /**
   * A record can't be decoded or applied. It is never skipped but retried, in a transaction of its own. The partition
   * goes back to reading when an attempt succeeds here, or when another process has advanced past the record.
   */
  | { name: 'stopped'; reason: string; failures: Failures | undefined }
  /**
   * The start offset could not be read, for example because the tables have another version. Nothing is applied until
   * the log asks for the offset again. Readiness reports it.
   */
  | { name: 'notStarted'; reason: string; failures: Failures | undefined }

/** Consecutive failures not caused by an event. Times are milliseconds of the consumer's clock. */
interface Failures {
  since: number
  last: number
  count: number
  error: unknown
}

export type PartitionChange =
  | { kind: 'started' }
  | { kind: 'notStarted'; error: unknown }
  | { kind: 'applied' }
  | { kind: 'failed'; error: unknown; now: number }
  | { kind: 'stopped'; error: unknown }
  /** Another process has advanced the partition past this one's offset. */
  | { kind: 'passed' }

export const reading: PartitionMode = { name: 'reading' }

const stoppedAfterMs = 10_000
// Longer than a backoff plus an attempt's timeouts: after such a gap, another process had the partition in between.
const reassignedAfterMs = 60_000

export function nextMode(mode: PartitionMode, change: PartitionChange): PartitionMode {
  switch (change.kind) {
    case 'applied':
    case 'passed':
      return reading
    case 'started': {
      // A new assignment isn't a success: otherwise a partition that fails after each one would never be reported
      // stuck.
      const failures = failuresOf(mode)
      return failures ? { name: 'failing', failures } : reading
    }
    case 'failed': {
      const failures = addFailure(failuresOf(mode), change)
      return mode.name === 'stopped' ? { ...mode, failures } : { name: 'failing', failures }
    }
    case 'stopped':
      return { name: 'stopped', reason: String(change.error), failures: failuresOf(mode) }
    case 'notStarted': {
      const reason = errorMessage(change.error)
      return { name: 'notStarted', reason, failures: failuresOf(mode) }
    }
  }
}

/** Returns why the partition is stuck; null while it progresses. */
export function stoppedReason(mode: PartitionMode, now: number): string | null {
  switch (mode.name) {
    case 'reading':
      return null
    case 'failing':
      return isStuck(mode.failures, now)
        ? `failed ${mode.failures.count} times in a row: ${mode.failures.error}`
        : null
    case 'stopped':
      return mode.reason
    case 'notStarted':
      return `not started: ${mode.reason}`
  }
}

export const failureCount = (mode: PartitionMode): number => failuresOf(mode)?.count ?? 0

const failuresOf = (mode: PartitionMode): Failures | undefined =>
  mode.name === 'reading' ? undefined : mode.failures

const isOutdated = ({ last }: Failures, now: number): boolean => now - last > reassignedAfterMs

const isStuck = (failures: Failures, now: number): boolean =>
  failures.last - failures.since >= stoppedAfterMs && !isOutdated(failures, now)

function addFailure(
  before: Failures | undefined,
  { now, error }: { now: number; error: unknown },
): Failures {
  assert(before === undefined || now >= before.last, 'the clock of a consumer must be monotonic')
  const { since, count } = before && !isOutdated(before, now) ? before : { since: now, count: 0 }
  return { since, last: now, count: count + 1, error }
}
