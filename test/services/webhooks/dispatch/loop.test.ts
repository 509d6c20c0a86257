import { pino } from 'pino'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createWorkHealth } from '../../../../services/webhooks/dispatch/dispatcher.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

const lines: string[] = []
const logger = pino(
  { base: null, timestamp: false },
  { write: (line) => void lines.push(JSON.parse(line).msg) },
)

test('one line says that it began and one that it is over', () => {
  const health = createWorkHealth(logger)
  health.succeeded()
  for (let i = 0; i < 3; i++) health.failed(new Error('no database'))
  health.succeeded()
  health.succeeded()
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
  health.succeeded()
  await expect(health.check()).resolves.toBeUndefined()
})
