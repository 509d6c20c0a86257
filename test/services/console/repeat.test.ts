import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { repeatAfter } from '../../../services/console/pages/shared/repeat.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

/** Seconds at which it repeats within an hour. */
function repetitions(slowsDown: boolean): number[] {
  const begin = Date.now()
  const seconds: number[] = []
  const stop = repeatAfter(() => seconds.push((Date.now() - begin) / 1000), { everyMs: 60_000, slowsDown })
  vi.advanceTimersByTime(3_600_000)
  stop()
  vi.advanceTimersByTime(3_600_000)
  return seconds
}

test('it repeats after the same time until it is stopped', () => {
  expect(repetitions(false)).toEqual(Array.from({ length: 60 }, (_, i) => (i + 1) * 60))
})

test('what slows down waits twice as long each time, up to ten minutes', () => {
  expect(repetitions(true)).toEqual([60, 180, 420, 900, 1500, 2100, 2700, 3300])
})
