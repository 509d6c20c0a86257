import { pino } from 'pino'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createWorkHealth, runOnDemand } from '../../../../services/webhooks/dispatch/dispatcher.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

/** Work that lasts as long as the test says, and when it began. */
function openWork() {
  const begunAt: number[] = []
  const start = Date.now()
  let end: (ms: number) => void = () => {}
  const work = () => {
    begunAt.push(Date.now() - start)
    const { promise, resolve } = Promise.withResolvers<number>()
    end = resolve
    return promise
  }
  return { begunAt, work, end: (againInMs: number) => end(againInMs) }
}

test('it begins at once and again when the work says', async () => {
  const { work, begunAt, end } = openWork()
  runOnDemand({ gapMs: 10, work })
  await vi.advanceTimersByTimeAsync(5)
  end(300)
  await vi.advanceTimersByTimeAsync(305)
  expect(begunAt).toEqual([0, 305])
})

test('many calls are one run, a gap after the start of the last one', async () => {
  const { work, begunAt, end } = openWork()
  const loop = runOnDemand({ gapMs: 10, work })
  await vi.advanceTimersByTimeAsync(2)
  end(500)
  await vi.advanceTimersByTimeAsync(0)
  for (let i = 0; i < 5; i++) loop.wake()
  await vi.advanceTimersByTimeAsync(100)
  expect(begunAt).toEqual([0, 10])
})

test('who asks while it runs gets another run', async () => {
  const { work, begunAt, end } = openWork()
  const loop = runOnDemand({ gapMs: 10, work })
  await vi.advanceTimersByTimeAsync(1)
  loop.wake()
  await vi.advanceTimersByTimeAsync(49)
  expect(begunAt).toEqual([0])
  end(500)
  await vi.advanceTimersByTimeAsync(1)
  expect(begunAt).toEqual([0, 50])
})

test('stopped, it waits for the running work and begins no other', async () => {
  const { work, begunAt, end } = openWork()
  const loop = runOnDemand({ gapMs: 10, work })
  await vi.advanceTimersByTimeAsync(1)
  let isStopped = false
  const stopping = loop.stop().then(() => {
    isStopped = true
  })
  await vi.advanceTimersByTimeAsync(100)
  expect(isStopped).toBe(false)
  end(0)
  await stopping
  loop.wake()
  await vi.advanceTimersByTimeAsync(1000)
  expect(begunAt).toEqual([0])
})

const lines: string[] = []
const logger = pino(
  { base: null, timestamp: false },
  { write: (line) => void lines.push(JSON.parse(line).msg) },
)

test('one line says that it began and one that it is over', () => {
  const health = createWorkHealth(logger)
  health.succeeded(500)
  for (let i = 0; i < 3; i++) expect(health.failed(new Error('no database'))).toBe(500)
  expect(health.succeeded(40)).toBe(40)
  health.succeeded(40)
  expect(lines).toEqual(['webhooks cannot be taken, trying again', 'webhooks are taken again'])
})

test('a server is not ready when nothing could be received for ten seconds, until something can', async () => {
  const health = createWorkHealth(logger)
  health.failed(new Error('no database'))
  vi.advanceTimersByTime(9_999)
  health.failed(new Error('no database'))
  await expect(health.check()).resolves.toBeUndefined()
  vi.advanceTimersByTime(1)
  await expect(health.check()).rejects.toThrow('webhooks cannot be taken')
  health.succeeded(500)
  await expect(health.check()).resolves.toBeUndefined()
})
