import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { runPeriodically } from '../../../infra/flow/periodic.ts'
import { eventually } from '../../support/eventually.ts'

const never = () => {
  throw new Error('no failure was expected')
}

test('it runs at once, and again and again until nothing more is due', async () => {
  let runs = 0
  const work = async () => ++runs < 5
  const { stop } = runPeriodically({ intervalMs: 60_000, work, onError: never })
  await eventually(() => expect(runs).toBe(5))
  await stop()
  expect(runs).toBe(5)
})

test('runs come every interval, also after one that failed', async () => {
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

test('a long work is alone, and the runs that it delayed are not caught up with', async () => {
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
  // Another one ticks meanwhile, so that time for many runs has passed.
  let ticks = 0
  const other = runPeriodically({ intervalMs: 1, work: async () => ++ticks < 0, onError: never })
  await eventually(() => expect(ticks).toBeGreaterThan(20))
  expect([runs, most]).toEqual([1, 1])
  const stopped = Promise.all([slow.stop(), other.stop()])
  gate.resolve()
  await stopped
  expect([runs, running]).toEqual([1, 0])
})

test('stopping ends a work that always finds more, after the one that runs', async () => {
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

  /** Looks that last as long as the test says, and when they began. */
  function openLooks() {
    const begunAt: number[] = []
    const start = Date.now()
    let end: (hasMore: boolean) => void = () => {}
    const work = () => {
      begunAt.push(Date.now() - start)
      const { promise, resolve } = Promise.withResolvers<boolean>()
      end = resolve
      return promise
    }
    const running = runPeriodically({ intervalMs: 500, minIntervalMs: 10, work, onError: never })
    return { begunAt, end: () => end(false), ...running }
  }

  test('often, it runs once, a gap after the start of the last work', async () => {
    const { begunAt, end, wake } = openLooks()
    await vi.advanceTimersByTimeAsync(2)
    end()
    await vi.advanceTimersByTimeAsync(0)
    for (let i = 0; i < 5; i++) wake()
    await vi.advanceTimersByTimeAsync(100)
    expect(begunAt).toEqual([0, 10])
  })

  test('while it runs, it runs once more', async () => {
    const { begunAt, end, wake } = openLooks()
    await vi.advanceTimersByTimeAsync(1)
    wake()
    await vi.advanceTimersByTimeAsync(49)
    expect(begunAt).toEqual([0])
    end()
    await vi.advanceTimersByTimeAsync(1)
    expect(begunAt).toEqual([0, 50])
  })

  test('after its end, it does nothing; stopping waits for the running work', async () => {
    const { begunAt, end, wake, stop } = openLooks()
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
    expect(begunAt).toEqual([0])
  })
})
