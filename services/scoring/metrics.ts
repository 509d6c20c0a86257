import { Gauge, type Registry } from 'prom-client'
import { createCounter } from '../../infra/counter.ts'
import type { EngineProgress } from '../../projections/answers/learned.ts'
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

type CountDecision = (decision: Pick<SessionScored, 'environment' | 'verdict' | 'reason'>) => void

export function createDecisionCounter(registry: Registry): CountDecision {
  const decisions = createCounter(registry, {
    name: 'tidegate_decisions_total',
    help: 'Decisions by trigger: the first snapshot, a changed verdict, a hand-off, the end of the session, or an agent lookup.',
    labels: { environment: environments, verdict: verdicts, reason: reasons },
  })
  return ({ environment, verdict, reason }) =>
    reason && decisions.inc({ environment, verdict, reason })
}

export type CountAttestation = (outcome: Pick<SessionAttestation, 'method' | 'status'>) => void

export function createAttestationCounter(registry: Registry): CountAttestation {
  const attestations = createCounter(registry, {
    name: 'tidegate_attestations_total',
    help: 'App attestations checked, by method and result.',
    labels: { method: methods, status: statuses },
  })
  return ({ method, status }) => attestations.inc({ method, status })
}

/** Registers gauges of the learning progress of each browser engine, as of the last read. */
export function registerLearningGauges(registry: Registry, overview: () => EngineProgress[]): void {
  const gauge = (name: string, help: string, value: (engine: EngineProgress) => number) =>
    new Gauge({
      name,
      help,
      labelNames: ['environment', 'engine'],
      registers: [registry],
      collect() {
        for (const progress of overview()) {
          const { environment, engine } = progress
          this.set({ environment, engine }, value(progress))
        }
      },
    })
  gauge(
    'tidegate_engine_visitors',
    'Visitors whose answers were used to learn an engine. It is learned at 20 visitors, or after `tidegate learn`.',
    ({ visitors }) => visitors,
  )
  gauge(
    'tidegate_engine_questions_disputed',
    'How many of the 12 frequent questions of this deployment get different answers from groups of visitors with the same engine.',
    ({ disputed }) => disputed,
  )
}
