import type { Registry } from 'prom-client'
import { createCounter } from '../../../infra/counter.ts'
import type { AgentStatus } from '../../../schemas/events.ts'
import type { RequestDecision } from './decide.ts'

export type CountRequest = (decision: Pick<RequestDecision, 'verdict' | 'agent'>) => void

const verdicts: RequestDecision['verdict'][] = ['bot', 'inconclusive']
const statuses: AgentStatus[] = ['none', 'declared', 'signed', 'verified', 'spoofed']

/** All that stays of a request that was scored. */
export function countRequests(registry: Registry): CountRequest {
  const requests = createCounter(registry, {
    name: 'tidegate_requests_scored_total',
    help: 'Requests that edges had scored, by verdict and by whether their agent is who it says.',
    labels: { verdict: verdicts, agent: statuses },
  })
  return ({ verdict, agent }) => requests.inc({ verdict, agent: agent.status })
}
