import { pino } from 'pino'
import { expect, test, vi } from 'vitest'
import { createDispatchHealth } from '../../../../services/webhooks/dispatch/dispatcher.ts'

test('a server is not ready once no delivery could be taken for ten seconds, until one can', async ({
  onTestFinished,
}) => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const health = createDispatchHealth(pino({ level: 'silent' }))
  health.failed(new Error('no database'))
  vi.advanceTimersByTime(9_999)
  health.failed(new Error('no database'))
  await expect(health.check()).resolves.toBeUndefined()
  vi.advanceTimersByTime(1)
  await expect(health.check()).rejects.toThrow('cannot take webhook deliveries')
  health.succeeded()
  await expect(health.check()).resolves.toBeUndefined()
})
