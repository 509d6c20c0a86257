import type { Registry } from 'prom-client'
import { createCounter } from '../../../infra/counter.ts'
import type { AgentStatus } from '../../../schemas/events.ts'
import type { RequestDecision } from './decide.ts'

export type CountRequest = (decision: Pick<RequestDecision, 'verdict' | 'agent'>) => void

const verdicts: RequestDecision['verdict'][] = ['bot', 'inconclusive']
const statuses: AgentStatus[] = ['none', 'declared', 'signed', 'verified', 'spoofed']

/** Counts scored requests. Nothing else about them is stored. */
export function createRequestCounter(registry: Registry): CountRequest {
  const requests = createCounter(registry, {
    name: 'tidegate_requests_scored_total',
    help: 'Requests scored for edges, by verdict and agent verification.',
    labels: { verdict: verdicts, agent: statuses },
  })
  return ({ verdict, agent }) => requests.inc({ verdict, agent: agent.status })
}
