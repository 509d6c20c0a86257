import assert from 'node:assert/strict'
import { errorMessage } from '../thrown.ts'

/*
 * How a consumer gets on with one partition.
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
  /** Its records are applied together with those of all other partitions that are read. */
  | { name: 'reading' }
  /**
   * The last attempt failed, and not because of an event: the database may be away. It is tried again by itself, so that
   * it holds up no other partition, and goes back to reading once an attempt succeeds.
   */
  | { name: 'failing'; failures: Failures }
  /**
   * A record cannot be decoded or applied. Nothing is skipped, so it is tried again and again, by itself. It goes back to
   * reading when an attempt succeeds here, or when another process got past the record.
   */
  | { name: 'stopped'; reason: string; failures: Failures | undefined }
  /**
   * The offset to start at was refused, as with tables of another version. Nothing is applied until the log asks again,
   * and readiness is where this has to show.
   */
  | { name: 'notStarted'; reason: string; failures: Failures | undefined }

/** Failures in a row that no event is to blame for. Times are milliseconds of the clock. */
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
  /** Another process got past the offset that this one stands at. */
  | { kind: 'passed' }

export const reading: PartitionMode = { name: 'reading' }

const stoppedAfterMs = 10_000
// Longer than the back-off and the time limits of an attempt: the partition was given to another process since.
const reassignedAfterMs = 60_000

export function nextMode(mode: PartitionMode, change: PartitionChange): PartitionMode {
  switch (change.kind) {
    case 'applied':
    case 'passed':
      return reading
    case 'started': {
      // A new assignment is no success: who fails after each of them would never show that it stands still.
      const failures = failuresOf(mode)
      return failures ? { name: 'failing', failures } : reading
    }
    case 'failed': {
      const failures = failedAgain(failuresOf(mode), change)
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

/** Why the partition stands still; null while it goes on. */
export function stoppedReason(mode: PartitionMode, now: number): string | null {
  switch (mode.name) {
    case 'reading':
      return null
    case 'failing':
      return standsStill(mode.failures, now)
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

const isOver = ({ last }: Failures, now: number): boolean => now - last > reassignedAfterMs

const standsStill = (failures: Failures, now: number): boolean =>
  failures.last - failures.since >= stoppedAfterMs && !isOver(failures, now)

function failedAgain(
  before: Failures | undefined,
  { now, error }: { now: number; error: unknown },
): Failures {
  assert(before === undefined || now >= before.last, 'the clock of a consumer goes forward')
  const { since, count } = before && !isOver(before, now) ? before : { since: now, count: 0 }
  return { since, last: now, count: count + 1, error }
}
