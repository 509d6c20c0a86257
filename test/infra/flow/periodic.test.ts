import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { runPeriodically } from '../../../infra/flow/periodic.ts'
import { eventually } from '../../support/eventually.ts'

const never = () => {
  throw new Error('no failure was expected')
}

test('it looks at once, and again and again until nothing more is due', async () => {
  let looks = 0
  const look = async () => ++looks < 5
  const { stop } = runPeriodically({ intervalMs: 60_000, look, onError: never })
  await eventually(() => expect(looks).toBe(5))
  await stop()
  expect(looks).toBe(5)
})

test('looks come every interval, also after one that failed', async () => {
  let looks = 0
  const errors: unknown[] = []
  const look = async () => {
    if (++looks === 1) throw new Error('down')
    return false
  }
  const { stop } = runPeriodically({ intervalMs: 1, look, onError: (error) => errors.push(error) })
  await eventually(() => expect(looks).toBeGreaterThan(3))
  await stop()
  expect(errors).toEqual([new Error('down')])
})

test('a long look is alone, and the looks that it delayed are not caught up with', async () => {
  const gate = Promise.withResolvers<void>()
  let [looks, running, most] = [0, 0, 0]
  const look = async () => {
    looks++
    most = Math.max(most, ++running)
    await gate.promise
    running--
    return false
  }
  const options = { look, onError: never }
  const slow = runPeriodically({ intervalMs: 1, ...options })
  // Another one ticks meanwhile, so that time for many looks has passed.
  let ticks = 0
  const other = runPeriodically({ intervalMs: 1, look: async () => ++ticks < 0, onError: never })
  await eventually(() => expect(ticks).toBeGreaterThan(20))
  expect([looks, most]).toEqual([1, 1])
  const stopped = Promise.all([slow.stop(), other.stop()])
  gate.resolve()
  await stopped
  expect([looks, running]).toEqual([1, 0])
})

test('stopping ends a look that always finds more, after the one that runs', async () => {
  let [looks, running] = [0, 0]
  const look = async () => {
    looks++
    running++
    await new Promise(setImmediate)
    running--
    return true
  }
  const { stop } = runPeriodically({ intervalMs: 60_000, look, onError: never })
  await eventually(() => expect(looks).toBeGreaterThan(3))
  await stop()
  const atStop = looks
  await new Promise(setImmediate)
  expect([looks, running]).toEqual([atStop, 0])
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
    const look = () => {
      begunAt.push(Date.now() - start)
      const { promise, resolve } = Promise.withResolvers<boolean>()
      end = resolve
      return promise
    }
    const running = runPeriodically({ intervalMs: 500, gapMs: 10, look, onError: never })
    return { begunAt, end: () => end(false), ...running }
  }

  test('often, it looks once, a gap after the start of the last look', async () => {
    const { begunAt, end, wake } = openLooks()
    await vi.advanceTimersByTimeAsync(2)
    end()
    await vi.advanceTimersByTimeAsync(0)
    for (let i = 0; i < 5; i++) wake()
    await vi.advanceTimersByTimeAsync(100)
    expect(begunAt).toEqual([0, 10])
  })

  test('while it looks, it looks once more', async () => {
    const { begunAt, end, wake } = openLooks()
    await vi.advanceTimersByTimeAsync(1)
    wake()
    await vi.advanceTimersByTimeAsync(49)
    expect(begunAt).toEqual([0])
    end()
    await vi.advanceTimersByTimeAsync(1)
    expect(begunAt).toEqual([0, 50])
  })

  test('after its end, it does nothing; stopping waits for the running look', async () => {
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
