import { expect, test } from 'vitest'
import {
  failureCount,
  nextMode,
  type PartitionChange,
  type PartitionMode,
  reading,
  stoppedReason,
} from '../../../infra/event-store/partition-mode.ts'

const after = (...changes: PartitionChange[]): PartitionMode => changes.reduce(nextMode, reading)

const failed = (now: number): PartitionChange => ({ kind: 'failed', error: new Error('away'), now })
const stopped: PartitionChange = { kind: 'stopped', error: new Error('unreadable') }
const notStarted: PartitionChange = { kind: 'notStarted', error: new Error('tables of version 2') }
const applied: PartitionChange = { kind: 'applied' }
const started: PartitionChange = { kind: 'started' }

test.each<
  [string, { given: PartitionChange[]; mode: PartitionMode['name']; stopped: string | null }]
>([
  ['nothing yet', { given: [], mode: 'reading', stopped: null }],
  ['a first assignment', { given: [started], mode: 'reading', stopped: null }],
  ['a failure', { given: [failed(0)], mode: 'failing', stopped: null }],
  ['a failure, and a success', { given: [failed(0), applied], mode: 'reading', stopped: null }],
  ['a record that stops it', { given: [stopped], mode: 'stopped', stopped: 'Error: unreadable' }],
  [
    'a stop, and a failure',
    { given: [stopped, failed(0)], mode: 'stopped', stopped: 'Error: unreadable' },
  ],
  ['a stop, and a success', { given: [stopped, applied], mode: 'reading', stopped: null }],
  [
    'a stop that another process has passed',
    { given: [stopped, { kind: 'passed' }], mode: 'reading', stopped: null },
  ],
  [
    'a failed start',
    { given: [notStarted], mode: 'notStarted', stopped: 'not started: tables of version 2' },
  ],
  ['a failed start, and a start', { given: [notStarted, started], mode: 'reading', stopped: null }],
  ['a stop, and a start', { given: [stopped, started], mode: 'reading', stopped: null }],
  ['a failure, and a start', { given: [failed(0), started], mode: 'failing', stopped: null }],
  [
    'a failure, a failed start, and a start',
    { given: [failed(0), notStarted, started], mode: 'failing', stopped: null },
  ],
])('after %s', (_, { given, mode, stopped }) => {
  const then = after(...given)
  expect(then.name).toBe(mode)
  expect(stoppedReason(then, 0)).toBe(stopped)
})

test('a partition is stuck after ten seconds of failures, until a minute without any', () => {
  const mode = after(failed(0), failed(5000), failed(10_000))
  expect(stoppedReason(after(failed(0), failed(9999)), 9999)).toBeNull()
  expect(stoppedReason(mode, 70_000)).toBe('failed 3 times in a row: Error: away')
  expect(stoppedReason(mode, 70_001)).toBeNull()
  expect(failureCount(nextMode(mode, failed(70_001)))).toBe(1)
  expect(failureCount(nextMode(mode, failed(70_000)))).toBe(4)
})

test('a clock that goes back throws', () => {
  expect(() => after(failed(2), failed(1))).toThrow('monotonic')
})
