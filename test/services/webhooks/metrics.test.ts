import { Registry } from 'prom-client'
import { expect, test } from 'vitest'
import { createWebhookMeter } from '../../../services/webhooks/metrics.ts'

test('attempts, deliveries and the queue are measured, and the queue is read once per scrape', async () => {
  const registry = new Registry()
  let reads = 0
  const meter = createWebhookMeter(registry, async () => {
    reads++
    return { oldestDueAt: 1_000_000, due: 7, failed: 3, now: 1_004_500 }
  })
  meter.onAttempt({ outcome: 'retrying', durationMs: 250 })
  meter.onAttempt({ outcome: 'succeeded', durationMs: 20 })
  meter.onDelivered(90_000)
  meter.onSending(5)

  const lines = (await registry.metrics()).split('\n')
  expect(reads).toBe(1)
  expect(lines).toEqual(
    expect.arrayContaining([
      'tidegate_webhook_attempts_total{outcome="retrying"} 1',
      'tidegate_webhook_attempts_total{outcome="succeeded"} 1',
      'tidegate_webhook_attempt_duration_seconds_bucket{le="0.025"} 1',
      'tidegate_webhook_attempt_duration_seconds_sum 0.27',
      'tidegate_webhook_delivery_duration_seconds_bucket{le="60"} 0',
      'tidegate_webhook_delivery_duration_seconds_bucket{le="300"} 1',
      'tidegate_webhook_requests_in_flight 5',
      'tidegate_webhook_queue_age_seconds 4.5',
      'tidegate_webhook_queue_due 7',
      'tidegate_webhook_dead_letters 3',
    ]),
  )
})

test('without due deliveries, the queue age is 0', async () => {
  const registry = new Registry()
  createWebhookMeter(registry, async () => ({ oldestDueAt: null, due: 0, failed: 0, now: 5 }))
  expect(await registry.metrics()).toMatch(/^tidegate_webhook_queue_age_seconds 0$/m)
})
