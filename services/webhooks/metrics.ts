import { Gauge, Histogram, type Registry } from 'prom-client'
import { createCounter } from '../../infra/counter.ts'
import { cachedFor } from '../../infra/timing.ts'
import type { QueueStats } from '../../projections/webhooks/queries.ts'
import type { WebhookAttemptOutcome } from '../../schemas/events.ts'

export interface WebhookMeter {
  onAttempt(attempt: { outcome: WebhookAttemptOutcome; durationMs: number }): void
  /** `latencyMs`: time since the event was created. */
  onDelivered(latencyMs: number): void
  onSending(requests: number): void
}

/** `now`: time of the reading, epoch milliseconds. */
type QueueReading = QueueStats & { now: number }

const attemptOutcomes: WebhookAttemptOutcome[] = ['succeeded', 'retrying', 'failed']

// Seconds. A request ends within its timeout; a delivery may take days, because of retries.
const attemptBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15]
const deliveryBuckets = [
  0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200, 28_800, 86_400, 345_600,
]

/** Registers the webhook metrics. `queue` is read at each scrape. */
export function createWebhookMeter(
  registry: Registry,
  queue: () => Promise<QueueReading>,
): WebhookMeter {
  const registers = [registry]
  const attempts = createCounter(registry, {
    name: 'tidegate_webhook_attempts_total',
    help: 'Webhook delivery attempts: succeeded, retrying (another attempt follows) or failed (last attempt).',
    labels: { outcome: attemptOutcomes },
  })
  const durations = new Histogram({
    name: 'tidegate_webhook_attempt_duration_seconds',
    help: 'Time from the DNS lookup of the receiver to the end of its response.',
    buckets: attemptBuckets,
    registers,
  })
  const latencies = new Histogram({
    name: 'tidegate_webhook_delivery_duration_seconds',
    help: 'Time from an event to its successful delivery, retries included.',
    buckets: deliveryBuckets,
    registers,
  })
  const sending = new Gauge({
    name: 'tidegate_webhook_requests_in_flight',
    help: 'Webhook requests in flight in this process.',
    registers,
  })
  measureQueue(registry, queue)
  return {
    onAttempt({ outcome, durationMs }) {
      attempts.inc({ outcome })
      durations.observe(durationMs / 1000)
    },
    onDelivered: (latencyMs) => latencies.observe(latencyMs / 1000),
    onSending: (requests) => sending.set(requests),
  }
}

function measureQueue(registry: Registry, queue: () => Promise<QueueReading>): void {
  // All gauges of a scrape share one reading.
  const readQueue = cachedFor(0, queue)
  const gauge = (
    name: string,
    { help, measure }: { help: string; measure: (reading: QueueReading) => number },
  ) =>
    new Gauge({
      name,
      help,
      registers: [registry],
      async collect() {
        this.set(measure(await readQueue()))
      },
    })
  gauge('tidegate_webhook_queue_age_seconds', {
    help: 'Age of the longest overdue webhook delivery.',
    measure: ({ oldestDueAt, now }) =>
      oldestDueAt === null ? 0 : Math.max(0, now - oldestDueAt) / 1000,
  })
  gauge('tidegate_webhook_queue_due', {
    help: 'Webhook deliveries that are due, counted up to 100,000.',
    measure: ({ due }) => due,
  })
  gauge('tidegate_webhook_dead_letters', {
    help: 'Webhook deliveries that failed after their last attempt, counted up to 100,000.',
    measure: ({ failed }) => failed,
  })
}
