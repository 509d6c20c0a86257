import { expect, test } from 'vitest'
import type { DeliveryStats } from '../../../../projections/webhooks/queries.ts'
import { summarizeHealth } from '../../../../services/webhooks/endpoints/delivery-health.ts'

const stats: DeliveryStats = {
  endpointId: 'we_1',
  attempted: 0,
  succeeded: 0,
  pending: 0,
  recentFailures: 0,
  latencyP50: null,
  latencyP95: null,
  lastFailure: null,
}
const active = { status: 'active', flagged_reason: null } as const

test.each([
  [
    'disabled, whatever it delivered',
    { status: 'disabled', flagged_reason: null },
    9,
    9,
    'disabled',
  ],
  ['flagged', { status: 'active', flagged_reason: 'gone' }, 0, 0, 'failing'],
  ['without deliveries', active, 0, 0, 'idle'],
  ['with one failed delivery', active, 1, 1, 'failing'],
  ['with one failure among three', active, 3, 1, 'healthy'],
  ['with half of the newest 20 failed', active, 1000, 10, 'failing'],
  ['with fewer than half of the newest 20 failed', active, 1000, 9, 'healthy'],
] as const)('an endpoint %s is %4$s', (_, endpoint, attempted, recentFailures, status) => {
  expect(summarizeHealth(endpoint, { ...stats, attempted, recentFailures })).toMatchObject({
    status,
  })
})

test('rates, latencies and the latest failure are those of the deliveries', () => {
  const lastFailure = { at: 0, event_id: 'evt_1', response_status: 500, error: 'answered 500' }
  const counted = { attempted: 4, succeeded: 3, latencyP50: 20.4, latencyP95: 99.5, lastFailure }
  expect(summarizeHealth(active, { ...stats, ...counted })).toMatchObject({
    deliveries: 4,
    success_rate: 0.75,
    latency_p50_ms: 20,
    latency_p95_ms: 100,
    last_failure: { ...lastFailure, at: '1970-01-01T00:00:00.000Z' },
  })
})
