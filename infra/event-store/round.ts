import assert from 'node:assert/strict'
import { type Position, placeName, type ReadOn } from '../log/port.ts'
import type { DecodedRecords, EventBatch } from './event-batch.ts'

/*
 * A round: what has come to the partitions of a consumer is applied, in as few transactions as the events allow. It is a
 * list of attempts. The first is made, and what came of it decides what is left of the list.
 *
 *   ┌──────────┐ an event   ┌───────┐ an event   ┌──────────┐
 *   │ together │ ─────────▶ │ single│ ─────────▶ │ oneByOne │ ◀┐ applied,
 *   └────┬─────┘ failed     └───┬───┘ failed     └────┬─────┘ ─┘ more events
 *        │                      │                     │
 *        └──────── applied ─────┴─── applied, or stopped at the event ──▶ the next attempt
 *
 *   From all of them: whatever else fails ends the round, and the partitions that are left are read again.
 */
export type Attempt =
  /** All partitions that are read, in one transaction. If an event fails, each of them is tried by itself to find it. */
  | { mode: 'together'; batches: PendingBatch[] }
  /** One partition, so that it holds up no other. If an event fails, its events are tried one by one. */
  | { mode: 'single'; batch: PendingBatch }
  /**
   * The first event of the batch, so that what precedes the failing one is applied and its position is known. After the
   * last event comes the rest of the batch without any.
   */
  | { mode: 'oneByOne'; batch: PendingBatch }

export interface PendingBatch extends EventBatch, DecodedRecords {
  /** The offset of its first record, where it is read again. */
  start: number
}

export type Outcome =
  | { kind: 'applied'; next: Position[] }
  | { kind: 'eventFailed'; cause: unknown }
  | { kind: 'failed'; error: unknown }

/** What came of a partition, which goes on at `at`. */
export type Result =
  | { kind: 'applied'; at: Position; isBatchEnd: boolean }
  | { kind: 'stopped'; at: Position; error: unknown }
  | { kind: 'failed'; at: Position; error: unknown }
  /** It was not tried, since an attempt before it failed for a reason that it would wait for as long. */
  | { kind: 'left'; at: Position }

export interface Round {
  attempts: Attempt[]
  results: Result[]
}

/** `failures`: of a partition that is to be tried by itself; undefined = together with the others. */
export function planRound(
  batches: PendingBatch[],
  failures: (batch: PendingBatch) => number | undefined,
): Attempt[] {
  const together = batches.filter((batch) => failures(batch) === undefined)
  const single = batches.filter((batch) => failures(batch) !== undefined)
  // Who failed most comes last, so that one that always fails keeps no other from its turn.
  single.sort((a, b) => (failures(a) ?? 0) - (failures(b) ?? 0))
  return [
    ...(together.length > 0 ? [{ mode: 'together' as const, batches: together }] : []),
    ...eachSingle(single),
  ]
}

/** What an attempt applies as a whole. */
export function batchesOf(attempt: Attempt): EventBatch[] {
  switch (attempt.mode) {
    case 'together':
      return attempt.batches
    case 'single':
      return [attempt.batch]
    case 'oneByOne':
      return [firstOf(attempt.batch)]
  }
}

/** The round after its first attempt. */
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
      return { attempts: rest, results: attempt.batches.map((batch) => appliedTo(batch, next)) }
    case 'single':
      return { attempts: rest, results: [appliedTo(attempt.batch, next)] }
    case 'oneByOne': {
      const [event, ...events] = attempt.batch.events
      const result = appliedTo(firstOf(attempt.batch), next)
      // Not past the event: commits were lost, and the partition is read again from there.
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
      return { attempts: [...eachSingle(attempt.batches), ...rest], results: [] }
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
  const left = rest
    .flatMap(pendingOf)
    .map((batch) => ({ kind: 'left' as const, at: startOf(batch) }))
  return { attempts: [], results: [...failed, ...left] }
}

/** Where the partition is read on; undefined = behind its batch. */
export function readOnAfter(result: Result): ReadOn | undefined {
  switch (result.kind) {
    case 'applied':
      return result.isBatchEnd ? undefined : result.at
    case 'stopped':
    case 'failed':
    case 'left':
      return { ...result.at, failed: true }
  }
}

function appliedTo(batch: PendingBatch, next: Position[]): Result {
  const { topic, partition, end, poison } = batch
  const offset = next.find((position) => placeName(position) === placeName(batch))?.offset ?? end
  const at = { topic, partition, offset }
  if (poison && offset === end) return { kind: 'stopped', at, error: poison.error }
  return { kind: 'applied', at, isBatchEnd: offset === end }
}

function firstOf(batch: PendingBatch): PendingBatch {
  const [event] = batch.events
  return event
    ? { ...batch, events: [event], end: event.position.offset + 1, poison: undefined }
    : batch
}

const eachSingle = (batches: PendingBatch[]): Attempt[] =>
  batches.map((batch) => ({ mode: 'single', batch }))

const pendingOf = (attempt: Attempt): PendingBatch[] =>
  attempt.mode === 'together' ? attempt.batches : [attempt.batch]

const startOf = ({ topic, partition, start }: PendingBatch): Position => ({
  topic,
  partition,
  offset: start,
})
