import { Counter, type Registry } from 'prom-client'
import type { AgentStatus } from '../../../schemas/events.ts'
import type { RequestDecision } from './decide.ts'

export type CountRequest = (decision: Pick<RequestDecision, 'verdict' | 'agent'>) => void

const verdicts: RequestDecision['verdict'][] = ['bot', 'inconclusive']
const statuses: AgentStatus[] = ['none', 'declared', 'signed', 'verified', 'spoofed']

/** All that stays of a request that was scored. */
export function countRequests(registry: Registry): CountRequest {
  const requests = new Counter({
    name: 'tidegate_requests_scored_total',
    help: 'Requests that edges had scored, by verdict and by whether their agent is who it says.',
    labelNames: ['verdict', 'agent'],
    registers: [registry],
  })
  // A series that is not there yet hides its first counts from queries for the rate.
  for (const verdict of verdicts) for (const agent of statuses) requests.inc({ verdict, agent }, 0)
  return ({ verdict, agent }) => requests.inc({ verdict, agent: agent.status })
}
