import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { runPeriodically } from '../../../infra/flow/periodic.ts'
import { eventually } from '../../support/eventually.ts'

const never = () => {
  throw new Error('no failure was expected')
}

test('runs at once, and again until no more work is due', async () => {
  let runs = 0
  const work = async () => ++runs < 5
  const { stop } = runPeriodically({ intervalMs: 60_000, work, onError: never })
  await eventually(() => expect(runs).toBe(5))
  await stop()
  expect(runs).toBe(5)
})

test('runs every interval, also after a failure', async () => {
  let runs = 0
  const errors: unknown[] = []
  const work = async () => {
    if (++runs === 1) throw new Error('down')
    return false
  }
  const { stop } = runPeriodically({ intervalMs: 1, work, onError: (error) => errors.push(error) })
  await eventually(() => expect(runs).toBeGreaterThan(3))
  await stop()
  expect(errors).toEqual([new Error('down')])
})

test('runs never overlap, and missed runs are not made up for', async () => {
  const gate = Promise.withResolvers<void>()
  let [runs, running, most] = [0, 0, 0]
  const work = async () => {
    runs++
    most = Math.max(most, ++running)
    await gate.promise
    running--
    return false
  }
  const options = { work, onError: never }
  const slow = runPeriodically({ intervalMs: 1, ...options })
  // Another periodic ticks meanwhile, to show that time for many runs has passed.
  let ticks = 0
  const other = runPeriodically({ intervalMs: 1, work: async () => ++ticks < 0, onError: never })
  await eventually(() => expect(ticks).toBeGreaterThan(20))
  expect([runs, most]).toEqual([1, 1])
  const stopped = Promise.all([slow.stop(), other.stop()])
  gate.resolve()
  await stopped
  expect([runs, running]).toEqual([1, 0])
})

test('stop ends the runs even if more work is always due', async () => {
  let [runs, running] = [0, 0]
  const work = async () => {
    runs++
    running++
    await new Promise(setImmediate)
    running--
    return true
  }
  const { stop } = runPeriodically({ intervalMs: 60_000, work, onError: never })
  await eventually(() => expect(runs).toBeGreaterThan(3))
  await stop()
  const atStop = runs
  await new Promise(setImmediate)
  expect([runs, running]).toEqual([atStop, 0])
})

describe('woken', () => {
  beforeEach(() => {
    vi.useFakeTimers()
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  /** Starts work that runs until the test calls `end`. `startedAt` has the times of the runs. */
  function startRuns() {
    const startedAt: number[] = []
    const start = Date.now()
    let end: (hasMore: boolean) => void = () => {}
    const work = () => {
      startedAt.push(Date.now() - start)
      const { promise, resolve } = Promise.withResolvers<boolean>()
      end = resolve
      return promise
    }
    const running = runPeriodically({ intervalMs: 500, minIntervalMs: 10, work, onError: never })
    return { startedAt, end: () => end(false), ...running }
  }

  test('several times, it runs once, `minIntervalMs` after the start of the last run', async () => {
    const { startedAt, end, wake } = startRuns()
    await vi.advanceTimersByTimeAsync(2)
    end()
    await vi.advanceTimersByTimeAsync(0)
    for (let i = 0; i < 5; i++) wake()
    await vi.advanceTimersByTimeAsync(100)
    expect(startedAt).toEqual([0, 10])
  })

  test('during a run, it runs once more', async () => {
    const { startedAt, end, wake } = startRuns()
    await vi.advanceTimersByTimeAsync(1)
    wake()
    await vi.advanceTimersByTimeAsync(49)
    expect(startedAt).toEqual([0])
    end()
    await vi.advanceTimersByTimeAsync(1)
    expect(startedAt).toEqual([0, 50])
  })

  test('after stop, it does not run; stop waits for the current run', async () => {
    const { startedAt, end, wake, stop } = startRuns()
    await vi.advanceTimersByTimeAsync(1)
    let isStopped = false
    const stopping = stop().then(() => {
      isStopped = true
    })
    await vi.advanceTimersByTimeAsync(100)
    expect(isStopped).toBe(false)
    end()
    await stopping
    wake()
    await vi.advanceTimersByTimeAsync(1000)
    expect(startedAt).toEqual([0])
  })
})
