import { Histogram, type Registry } from 'prom-client'
import { createCounter } from '../../infra/counter.ts'
import type { DirectCalls, DirectResult } from '../../infra/wire/webhooks/direct-call.ts'

const attemptOutcomes = ['accepted', 'retrying', 'failed', 'not_sent'] as const
const approvalOutcomes = ['approved', 'rejected'] as const
type GateAttemptOutcome = (typeof attemptOutcomes)[number]

export type GateMeter = ReturnType<typeof createGateMeter>

// Seconds. A person waits only for the first few; an approval times out after about 15 minutes.
const buckets = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600, 900]

export function createGateMeter(registry: Registry) {
  const registers = [registry]
  const attempts = createCounter(registry, {
    name: 'tidegate_gate_approval_attempts_total',
    help: 'Attempts to create an account at a service: accepted, retrying (another attempt follows), failed (last attempt) or not_sent.',
    labels: { outcome: attemptOutcomes },
  })
  const approvals = new Histogram({
    name: 'tidegate_gate_approval_duration_seconds',
    help: "Time from a person's approval of a signup to its outcome: approved or rejected.",
    labelNames: ['outcome'],
    buckets,
    registers,
  })
  for (const outcome of approvalOutcomes) approvals.zero({ outcome })
  return {
    onAttempt: (outcome: GateAttemptOutcome) => attempts.inc({ outcome }),
    /** `ms`: time since the approval started. */
    onConcluded: (outcome: (typeof approvalOutcomes)[number], ms: number) =>
      approvals.observe({ outcome }, Math.max(0, ms) / 1000),
  }
}

const outcomeByKind: Record<DirectResult['kind'], GateAttemptOutcome> = {
  accepted: 'accepted',
  retry: 'retrying',
  failed: 'failed',
  not_sent: 'not_sent',
}

export function withAttemptMetrics(calls: DirectCalls, meter: GateMeter | undefined): DirectCalls {
  if (!meter) return calls
  return {
    ...calls,
    async attempt(call) {
      const result = await calls.attempt(call)
      meter.onAttempt(outcomeByKind[result.kind])
      return result
    },
  }
}
