import assert from 'node:assert/strict'
import { type Position, partitionName, type ResumePosition } from '../log/port.ts'
import type { DecodedRecords, EventBatch } from './event-batch.ts'

/*
 * A round applies the batches of a consumer's partitions in as few transactions as possible. It is a list of attempts:
 * the first one is made, and its outcome decides which attempts follow.
 *
 *   ┌──────────┐ an event   ┌───────┐ an event   ┌──────────┐
 *   │ together │ ─────────▶ │ single│ ─────────▶ │ oneByOne │ ◀┐ applied,
 *   └────┬─────┘ failed     └───┬───┘ failed     └────┬─────┘ ─┘ more events
 *        │                      │                     │
 *        └──────── applied ─────┴─── applied, or stopped at the event ──▶ the next attempt
 *
 *   In any mode, a failure not caused by an event ends the round, and the remaining partitions are read again.
 */
export type Attempt =
  /** Applies all reading partitions in one transaction. If an event fails, each partition is tried alone to find it. */
  | { mode: 'together'; batches: PendingBatch[] }
  /** Applies one partition, so it doesn't block the others. If an event fails, its events are tried one by one. */
  | { mode: 'single'; batch: PendingBatch }
  /**
   * Applies the first event of the batch, so that events before the failing one take effect and its position is found.
   * After the last event, the empty rest of the batch is applied to advance the offset to its end.
   */
  | { mode: 'oneByOne'; batch: PendingBatch }

export interface PendingBatch extends EventBatch, DecodedRecords {
  /** The offset of its first record, from which it is read again after a failure. */
  start: number
}

export type Outcome =
  | { kind: 'applied'; next: Position[] }
  | { kind: 'eventFailed'; cause: unknown }
  | { kind: 'failed'; error: unknown }

/** The result for a partition. `at` is the offset to resume at. */
export type Result =
  | { kind: 'applied'; at: Position; isBatchEnd: boolean }
  | { kind: 'stopped'; at: Position; error: unknown }
  | { kind: 'failed'; at: Position; error: unknown }
  /** Not tried, because an earlier attempt failed for a reason that affects all, such as an unavailable database. */
  | { kind: 'untried'; at: Position }

export interface Round {
  attempts: Attempt[]
  results: Result[]
}

/** Plans a round. `failuresOf` returns undefined for partitions to apply together, else a number of failures. */
export function planRound(
  batches: PendingBatch[],
  failuresOf: (batch: PendingBatch) => number | undefined,
): Attempt[] {
  const together = batches.filter((batch) => failuresOf(batch) === undefined)
  const single = batches.filter((batch) => failuresOf(batch) !== undefined)
  // Fewest failures first, so that a partition that always fails doesn't starve the others.
  single.sort((a, b) => (failuresOf(a) ?? 0) - (failuresOf(b) ?? 0))
  return [
    ...(together.length > 0 ? [{ mode: 'together' as const, batches: together }] : []),
    ...asSingleAttempts(single),
  ]
}

/** Returns the batches that the attempt applies in one transaction. */
export function batchesOf(attempt: Attempt): EventBatch[] {
  switch (attempt.mode) {
    case 'together':
      return attempt.batches
    case 'single':
      return [attempt.batch]
    case 'oneByOne':
      return [firstEventOf(attempt.batch)]
  }
}

/** Returns the results of the first attempt, and the attempts that follow. */
export function nextRound(attempts: Attempt[], outcome: Outcome): Round {
  const [attempt, ...rest] = attempts
  assert(attempt, 'an outcome belongs to an attempt')
  switch (outcome.kind) {
    case 'applied':
      return afterApplied(attempt, { rest, next: outcome.next })
    case 'eventFailed':
      return afterEventFailed(attempt, { rest, cause: outcome.cause })
    case 'failed':
      return endRound(attempt, { rest, error: outcome.error })
  }
}

function afterApplied(
  attempt: Attempt,
  { rest, next }: { rest: Attempt[]; next: Position[] },
): Round {
  switch (attempt.mode) {
    case 'together':
      return { attempts: rest, results: attempt.batches.map((batch) => appliedResult(batch, next)) }
    case 'single':
      return { attempts: rest, results: [appliedResult(attempt.batch, next)] }
    case 'oneByOne': {
      const [event, ...events] = attempt.batch.events
      const result = appliedResult(firstEventOf(attempt.batch), next)
      // The stored offset is before the event: Postgres lost commits, so read again from that offset.
      if (!event || result.at.offset <= event.position.offset)
        return { attempts: rest, results: [result] }
      const batch = { ...attempt.batch, events, expected: result.at.offset }
      return { attempts: [{ mode: 'oneByOne', batch }, ...rest], results: [result] }
    }
  }
}

function afterEventFailed(
  attempt: Attempt,
  { rest, cause }: { rest: Attempt[]; cause: unknown },
): Round {
  switch (attempt.mode) {
    case 'together':
      return { attempts: [...asSingleAttempts(attempt.batches), ...rest], results: [] }
    case 'single':
      return { attempts: [{ mode: 'oneByOne', batch: attempt.batch }, ...rest], results: [] }
    case 'oneByOne': {
      const [event] = attempt.batch.events
      if (!event) return endRound(attempt, { rest, error: cause })
      return { attempts: rest, results: [{ kind: 'stopped', at: event.position, error: cause }] }
    }
  }
}

function endRound(attempt: Attempt, { rest, error }: { rest: Attempt[]; error: unknown }): Round {
  const failed = pendingOf(attempt).map((batch) => ({
    kind: 'failed' as const,
    at: startOf(batch),
    error,
  }))
  const untried = rest
    .flatMap(pendingOf)
    .map((batch) => ({ kind: 'untried' as const, at: startOf(batch) }))
  return { attempts: [], results: [...failed, ...untried] }
}

/** Returns the position to resume the partition at; undefined = after its batch. */
export function resumeAfter(result: Result): ResumePosition | undefined {
  switch (result.kind) {
    case 'applied':
      return result.isBatchEnd ? undefined : result.at
    case 'stopped':
    case 'failed':
    case 'untried':
      return { ...result.at, failed: true }
  }
}

function appliedResult(batch: PendingBatch, next: Position[]): Result {
  const { topic, partition, end, poison } = batch
  const offset =
    next.find((position) => partitionName(position) === partitionName(batch))?.offset ?? end
  const at = { topic, partition, offset }
  if (poison && offset === end) return { kind: 'stopped', at, error: poison.error }
  return { kind: 'applied', at, isBatchEnd: offset === end }
}

function firstEventOf(batch: PendingBatch): PendingBatch {
  const [event] = batch.events
  return event
    ? { ...batch, events: [event], end: event.position.offset + 1, poison: undefined }
    : batch
}

const asSingleAttempts = (batches: PendingBatch[]): Attempt[] =>
  batches.map((batch) => ({ mode: 'single', batch }))

const pendingOf = (attempt: Attempt): PendingBatch[] =>
  attempt.mode === 'together' ? attempt.batches : [attempt.batch]

const startOf = ({ topic, partition, start }: PendingBatch): Position => ({
  topic,
  partition,
  offset: start,
})
