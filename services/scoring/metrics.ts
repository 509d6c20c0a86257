import { Gauge, type Registry } from 'prom-client'
import { createCounter } from '../../infra/counter.ts'
import type { EngineLearned } from '../../projections/answers/learned.ts'
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

export function countDecisions(registry: Registry): CountDecision {
  const decisions = createCounter(registry, {
    name: 'tidegate_decisions_total',
    help: 'Decisions by what asked for them: the first snapshot, a changed verdict, a hand-off, the end of the session, or what was looked up of its agent.',
    labels: { environment: environments, verdict: verdicts, reason: reasons },
  })
  return ({ environment, verdict, reason }) =>
    reason && decisions.inc({ environment, verdict, reason })
}

export type CountAttestation = (found: Pick<SessionAttestation, 'method' | 'status'>) => void

export function countAttestations(registry: Registry): CountAttestation {
  const attestations = createCounter(registry, {
    name: 'tidegate_attestations_total',
    help: 'Attestations of apps that were looked at, by kind and result.',
    labels: { method: methods, status: statuses },
  })
  return ({ method, status }) => attestations.inc({ method, status })
}

/** How far the engines of browsers are learned, as it was read last. */
export function measureLearning(registry: Registry, overview: () => EngineLearned[]): void {
  const gauge = (name: string, help: string, value: (engine: EngineLearned) => number) =>
    new Gauge({
      name,
      help,
      labelNames: ['environment', 'engine'],
      registers: [registry],
      collect() {
        for (const learned of overview()) {
          const { environment, engine } = learned
          this.set({ environment, engine }, value(learned))
        }
      },
    })
  gauge(
    'tidegate_engine_visitors',
    'Visitors who have taught the answers of an engine. With 20, or after `tidegate learn`, the engine is learned.',
    ({ visitors }) => visitors,
  )
  gauge(
    'tidegate_engine_questions_disputed',
    "The deployment's frequent questions, of 12, that groups of visitors of an engine answer differently.",
    ({ disputed }) => disputed,
  )
}
