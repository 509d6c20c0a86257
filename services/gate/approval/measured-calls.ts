import type { DirectAnswer, DirectCalls } from '../../../infra/wire/webhooks/direct-call.ts'
import type { GateOptions } from '../context.ts'
import type { GateAttemptOutcome } from '../metrics.ts'

const outcomes: Record<DirectAnswer['kind'], GateAttemptOutcome> = {
  accepted: 'accepted',
  retry: 'retrying',
  failed: 'failed',
  not_sent: 'not_sent',
}

/** The calls, each attempt counted by what it came to. */
export function measuredCalls({
  directCalls,
  meter,
}: Pick<GateOptions, 'directCalls' | 'meter'>): DirectCalls {
  if (!meter) return directCalls
  return {
    ...directCalls,
    async attempt(asked) {
      const answer = await directCalls.attempt(asked)
      meter.attempted(outcomes[answer.kind])
      return answer
    },
  }
}
