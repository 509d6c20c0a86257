import { Registry } from 'prom-client'
import { expect, test } from 'vitest'
import type { DirectCalls, DirectResult } from '../../../infra/wire/webhooks/direct-call.ts'
import { createGateMeter, withAttemptMetrics } from '../../../services/gate/metrics.ts'

const answers: DirectResult[] = [
  { kind: 'retry', problem: 'Later.' },
  { kind: 'retry', problem: 'Later.' },
  { kind: 'failed', problem: 'No.' },
  { kind: 'not_sent', reason: 'endpoint_disabled' },
  { kind: 'accepted', response: { status: 200, body: Buffer.alloc(0) } },
]

const asked = {
  eventId: 'evt_1',
  endpointId: 'we_1',
  attempt: 1,
  timeoutMs: 1,
  isLast: false,
  judge: () => ({ kind: 'accepted' }) as const,
}

test('counts each attempt by its outcome and passes on the result', async () => {
  const registry = new Registry()
  const queue = [...answers]
  const directCalls: DirectCalls = {
    raise: () => Promise.reject(new Error('nobody asked')),
    cancel: () => Promise.reject(new Error('nobody asked')),
    attempt: async () => queue.shift() ?? { kind: 'not_sent', reason: 'already_failed' },
  }
  const meter = createGateMeter(registry)
  const calls = withAttemptMetrics(directCalls, meter)
  for (const answer of answers) expect(await calls.attempt(asked)).toEqual(answer)
  meter.onConcluded('approved', 1500)
  const text = await registry.metrics()
  for (const line of ['retrying"} 2', 'failed"} 1', 'not_sent"} 1', 'accepted"} 1'])
    expect(text).toContain(`tidegate_gate_approval_attempts_total{outcome="${line}`)
  expect(text).toContain('tidegate_gate_approval_duration_seconds_sum{outcome="approved"} 1.5')
})
