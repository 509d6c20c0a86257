import { createCodec } from '../../../../infra/event-store/codec.ts'
import { type AddressNetwork, noNetwork } from '../../../../infra/ip/network.ts'
import type { LearnedAnswers } from '../../../../projections/answers/learned.ts'
import type { SessionScored } from '../../../../schemas/events.ts'
import { standardModel } from '../../../../services/scoring/model/model.ts'
import { scoreOf } from '../../../../services/scoring/model/score.ts'
import { scoredEvent } from '../../../../services/scoring/scored-event.ts'
import type { AllowsMinimal, Facts } from '../../../../services/scoring/session/facts.ts'
import {
  evolve,
  type SessionEvent,
  type SessionState,
} from '../../../../services/scoring/session/state.ts'
import { signalCatalogue } from '../../../../services/scoring/signals/catalogue.ts'
import {
  type Evaluation,
  evaluate,
  type FiredSignal,
  judgedBy,
} from '../../../../services/scoring/signals/evaluate.ts'
import { hashesOf } from '../../../../services/scoring/signals/repeats.ts'
import { batch, opened, platformOf, startedAt, testSession } from './events.ts'
import type { Client } from './snapshots.ts'
import { taught } from './taught.ts'

/** The state after the events; the first must open the session. */
export function stateAfter(events: SessionEvent[]): SessionState {
  const state = events.reduce<SessionState | undefined>(
    (known, event) => evolve(known, event),
    undefined,
  )
  if (!state) throw new Error('no events')
  return state
}

const codec = createCodec()

/** The decision about a state as readers get it: encoded and decoded. */
export function decisionAbout(
  state: SessionState,
  network: AddressNetwork = noNetwork.lookup(state.ip_address, startedAt),
  allowsMinimal?: AllowsMinimal,
): SessionScored {
  const evaluation = evaluate({ state, network, allowsMinimal, learned: taught })
  const trigger = {
    decisionId: 'evt_x',
    reason: 'first' as const,
    final: true,
    onlyOnChange: false,
    at: startedAt,
  }
  const about = {
    state,
    trigger,
    evaluation,
    visitor: null,
    hashes: hashesOf(evaluation.facts),
  }
  const decision = { ...about, evaluatedAt: startedAt, durationMs: 1 }
  const decoded = codec.decode(codec.encode(scoredEvent(decision).event))
  if (decoded.type !== 'SessionScored') throw new Error(decoded.type)
  return decoded.data
}

export interface Seen {
  /** Behaviour as the client sends it, channel by channel. */
  behavior?: object
  network?: AddressNetwork
  learned?: LearnedAnswers
  allowsMinimal?: AllowsMinimal
}

/** Evaluates a client's snapshot and the behaviour that came with it, as after another body. */
export function evaluateClient(
  client: Client,
  { behavior, network, learned = taught, allowsMinimal }: Seen = {},
): Evaluation {
  const session = testSession('evaluated', { client, platform: platformOf(client) })
  const observations = { version: 1, elapsed_ms: 500, snapshot: client.snapshot, behavior }
  const state = stateAfter([
    ...opened(session),
    batch(session, { observations }),
    batch(session, { seq: 2, observations: { version: 1, elapsed_ms: 900 } }),
  ])
  return evaluate({
    state,
    learned,
    allowsMinimal,
    network: network ?? noNetwork.lookup(session.ip, startedAt),
  })
}

export function slugs({ fired }: Evaluation): string[] {
  return fired.map(({ slug }) => slug)
}

/** Every signal as the standard model judges it. */
export const judgedSignals: FiredSignal[] = judgedBy(standardModel, signalCatalogue)

/** As if these signals had fired, whatever the facts are. */
export function evaluationOf(fired: FiredSignal[], facts: Facts): Evaluation {
  const signals = fired.map(({ slug }) => slug)
  const score = scoreOf(standardModel, { signals, hasSnapshot: facts.snapshot !== null })
  return { model: standardModel, facts, fired, score }
}
