import { Counter, type Registry } from 'prom-client'
import type {
  AttestationStatus,
  DecisionReason,
  Environment,
  SessionAttestation,
  SessionScored,
  Verdict,
} from '../../schemas/events.ts'
import type { SentAttestation } from '../../schemas/observations.ts'

const environments: Environment[] = ['live', 'test']
const verdicts: Verdict[] = ['human', 'bot', 'inconclusive']
const methods: SentAttestation['type'][] = ['app_attest', 'app_attest_assertion', 'play_integrity']
const statuses: AttestationStatus[] = ['valid', 'invalid', 'unverified']
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

export type CountAttestation = (found: Pick<SessionAttestation, 'method' | 'status'>) => void

export function countAttestations(registry: Registry): CountAttestation {
  const attestations = new Counter({
    name: 'tidegate_attestations_total',
    help: 'Attestations of apps that were looked at, by kind and result.',
    labelNames: ['method', 'status'],
    registers: [registry],
  })
  for (const method of methods) for (const status of statuses) attestations.inc({ method, status }, 0)
  return ({ method, status }) => attestations.inc({ method, status })
}
