import { describe, expect, test } from 'vitest'
import type { RecordedEvent } from '../../../infra/event-store/event.ts'
import {
  type Attempt,
  batchesOf,
  nextRound,
  type Outcome,
  type PendingBatch,
  planRound,
  resumeAfter,
} from '../../../infra/event-store/round.ts'
import { metaOf, sessionScored } from '../../support/session-scored.ts'

const topic = 't'

function event(partition: number, offset: number): RecordedEvent {
  const data = sessionScored()
  return {
    type: 'SessionScored',
    data,
    meta: metaOf(data),
    value: Buffer.alloc(0),
    position: { topic, partition, offset },
  }
}

const pending = (
  partition: number,
  offsets: number[],
  some: Partial<PendingBatch> = {},
): PendingBatch => ({
  topic,
  partition,
  start: offsets[0] ?? 0,
  expected: offsets[0] ?? 0,
  events: offsets.map((offset) => event(partition, offset)),
  end: (offsets.at(-1) ?? 0) + 1,
  poison: undefined,
  timeBefore: () => 0,
  ...some,
})

const at = (partition: number, offset: number) => ({ topic, partition, offset })
const cause = new Error('a defect')
const eventFailed: Outcome = { kind: 'eventFailed', cause }
const failed: Outcome = { kind: 'failed', error: cause }
const together = (...batches: PendingBatch[]): Attempt => ({ mode: 'together', batches })
const single = (batch: PendingBatch): Attempt => ({ mode: 'single', batch })
const oneByOne = (batch: PendingBatch): Attempt => ({ mode: 'oneByOne', batch })

const modes = (attempts: Attempt[]) =>
  attempts.map((attempt) => [attempt.mode, batchesOf(attempt).map(({ partition }) => partition)])

test('a plan applies reading partitions together, then the others by their number of failures', () => {
  const batches = [0, 1, 2, 3].map((partition) => pending(partition, [5]))
  const failures = new Map([
    [0, 7],
    [2, 0],
  ])
  expect(modes(planRound(batches, ({ partition }) => failures.get(partition)))).toEqual([
    ['together', [1, 3]],
    ['single', [2]],
    ['single', [0]],
  ])
})

describe('several partitions together', () => {
  const [first, second, third] = [pending(0, [5, 6]), pending(1, [8]), pending(2, [1])]
  const given = [together(first, second), single(third)]

  test('if applied, each continues after its batch or at the stored offset', () => {
    const { attempts, results } = nextRound(given, { kind: 'applied', next: [at(0, 7), at(1, 3)] })
    expect(modes(attempts)).toEqual([['single', [2]]])
    expect(results.map(resumeAfter)).toEqual([undefined, at(1, 3)])
  })

  test('if an event fails, each is tried alone, before partitions that failed earlier', () => {
    const { attempts, results } = nextRound(given, eventFailed)
    expect(modes(attempts)).toEqual([
      ['single', [0]],
      ['single', [1]],
      ['single', [2]],
    ])
    expect(results).toEqual([])
  })

  test('if anything else fails, the other attempts are dropped, and all partitions are read again', () => {
    const { attempts, results } = nextRound(given, failed)
    expect(attempts).toEqual([])
    expect(results.map(({ kind }) => kind)).toEqual(['failed', 'failed', 'untried'])
    expect(results.map(resumeAfter)).toEqual(
      [at(0, 5), at(1, 8), at(2, 1)].map((one) => ({ ...one, failed: true })),
    )
  })

  test('a partition stops at an unreadable record once the events before it are applied', () => {
    const poisoned = pending(0, [5], { poison: { error: cause } })
    const outcome = (offset: number) =>
      nextRound([together(poisoned)], { kind: 'applied', next: [at(0, offset)] })
    expect(outcome(6).results).toEqual([{ kind: 'stopped', at: at(0, 6), error: cause }])
    expect(outcome(4).results).toEqual([{ kind: 'applied', at: at(0, 4), isBatchEnd: false }])
  })
})

test('if an event of a single partition fails, its events are tried one by one', () => {
  const { attempts } = nextRound([single(pending(0, [5, 6])), single(pending(1, [1]))], eventFailed)
  expect(attempts.map(({ mode }) => mode)).toEqual(['oneByOne', 'single'])
})

describe('one event at a time', () => {
  const batch = pending(0, [5, 9], { end: 12, poison: { error: cause } })

  test('applies only the first event', () => {
    expect(batchesOf(oneByOne(batch))).toMatchObject([{ end: 6, events: [{ position: at(0, 5) }] }])
    expect(batchesOf(oneByOne({ ...batch, events: [] }))).toMatchObject([{ end: 12, events: [] }])
  })

  test('after an applied event, the next one is tried', () => {
    const applied: Outcome = { kind: 'applied', next: [at(0, 6)] }
    const { attempts, results } = nextRound([oneByOne(batch)], applied)
    const next = { expected: 6, events: [{ position: at(0, 9) }] }
    expect(attempts).toMatchObject([{ mode: 'oneByOne', batch: next }])
    expect(results).toMatchObject([{ kind: 'applied', at: at(0, 6) }])
  })

  test('if the event fails, the partition stops at it, and the others are tried', () => {
    const { attempts, results } = nextRound([oneByOne(batch), single(pending(1, [1]))], eventFailed)
    expect(results).toEqual([{ kind: 'stopped', at: at(0, 5), error: cause }])
    expect(modes(attempts)).toEqual([['single', [1]]])
  })

  test('if Postgres lost earlier commits, the partition is read again from the stored offset', () => {
    const applied: Outcome = { kind: 'applied', next: [at(0, 2)] }
    const { attempts, results } = nextRound([oneByOne(batch)], applied)
    expect(attempts).toEqual([])
    expect(results.map(resumeAfter)).toEqual([at(0, 2)])
  })

  test('after the last event, the rest of the batch advances the offset', () => {
    const rest = [oneByOne({ ...batch, events: [], poison: undefined })]
    expect(nextRound(rest, { kind: 'applied', next: [at(0, 12)] })).toEqual({
      attempts: [],
      results: [{ kind: 'applied', at: at(0, 12), isBatchEnd: true }],
    })
    // No event is to blame.
    expect(nextRound(rest, eventFailed).results).toMatchObject([{ kind: 'failed', at: at(0, 5) }])
  })
})

test('an outcome without an attempt throws', () => {
  expect(() => nextRound([], failed)).toThrow('belongs to an attempt')
})
