import { Counter, type Registry } from 'prom-client'
import type { DecisionReason, Environment, SessionScored, Verdict } from '../../schemas/events.ts'

const environments: Environment[] = ['live', 'test']
const verdicts: Verdict[] = ['human', 'bot', 'inconclusive']
const reasons: DecisionReason[] = ['first', 'changed', 'hand_off', 'idle', 'looked_up']

export type CountDecision = (decision: Pick<SessionScored, 'environment' | 'verdict' | 'reason'>) => void

export function countDecisions(registry: Registry): CountDecision {
  const decisions = new Counter({
    name: 'tidegate_decisions_total',
    help: 'Decisions by what asked for them: the first snapshot, a changed verdict, a hand-off, the end of the session, or what was looked up of its agent.',
    labelNames: ['environment', 'verdict', 'reason'],
    registers: [registry],
  })
  // A series that is not there yet hides its first counts from queries for the rate.
  for (const environment of environments)
    for (const verdict of verdicts)
      for (const reason of reasons) decisions.inc({ environment, verdict, reason }, 0)
  return ({ environment, verdict, reason }) => reason && decisions.inc({ environment, verdict, reason })
}
