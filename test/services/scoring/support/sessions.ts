import { createCodec } from '../../../../infra/event-store/codec.ts'
import { noNetwork } from '../../../../infra/ip/network.ts'
import type { SessionScored } from '../../../../schemas/events.ts'
import { createDecider, type Decision } from '../../../../services/scoring/decide.ts'
import { standardModel } from '../../../../services/scoring/model/model.ts'
import { scoreOf } from '../../../../services/scoring/model/score.ts'
import { scoredEvent } from '../../../../services/scoring/scored-event.ts'
import type { Facts } from '../../../../services/scoring/session/facts.ts'
import {
  evolve,
  type SessionEvent,
  type SessionState,
} from '../../../../services/scoring/session/state.ts'
import { signalCatalogue } from '../../../../services/scoring/signals/catalogue.ts'
import {
  applyModel,
  type Evaluation,
  evaluate,
  type FiredSignal,
} from '../../../../services/scoring/signals/evaluate.ts'
import { hashesOf } from '../../../../services/scoring/signals/repeats.ts'
import { batch, opened, platformOf, startedAt, type TestSession, testSession } from './events.ts'
import type { Client } from './snapshots.ts'
import { taught } from './taught.ts'

/** Returns the state after the events. The first must open the session. */
export function stateAfter(events: SessionEvent[]): SessionState {
  const state = events.reduce<SessionState | undefined>(
    (known, event) => evolve(known, event),
    undefined,
  )
  if (!state) throw new Error('no events')
  return state
}

/** Returns the state after a session's opening and its first batch with snapshot and behavior. */
export function stateOf(session: TestSession, behavior?: object): SessionState {
  const observations = { snapshot: session.client.snapshot, behavior }
  return stateAfter([...opened(session), batch(session, { observations })])
}

type Sources = Partial<Parameters<typeof evaluate>[0]>

/** Evaluates a state with learned answers and no network data. */
export function evaluateState(state: SessionState, sources: Sources = {}): Evaluation {
  const network = noNetwork.lookup(state.ip_address, startedAt)
  return evaluate({ network, learned: taught, ...sources, state })
}

/** Evaluates a client's snapshot and behavior after a second, empty body. */
export function evaluateClient(
  client: Client,
  { behavior, ...sources }: Sources & { behavior?: object } = {},
): Evaluation {
  const session = testSession('evaluated', { client, platform: platformOf(client) })
  const state = stateAfter([
    ...opened(session),
    batch(session, { observations: { snapshot: client.snapshot, behavior } }),
    batch(session, { seq: 2, observations: {} }),
  ])
  return evaluateState(state, sources)
}

/** Returns the decisions that the events trigger. Each event is a batch of its own. */
export function decisionsAfter(
  events: SessionEvent[],
  sources: Partial<Parameters<typeof createDecider>[1]> = {},
): { newStates: Map<string, SessionState>; decisions: Decision[] } {
  const context = { learned: taught, network: noNetwork, now: startedAt, ...sources }
  const { apply, newStates } = createDecider(new Map(), context)
  return { decisions: events.flatMap((event) => apply(event) ?? []), newStates }
}

const trigger = {
  decisionId: 'evt_x',
  reason: 'first' as const,
  final: true,
  onlyOnChange: false,
  at: startedAt,
}

/** Returns the final decision about a state, as scoring appends it. */
export function scored(
  state: SessionState,
  evaluation: Evaluation,
  overrides: Partial<Parameters<typeof scoredEvent>[0]> = {},
): { data: SessionScored } & ReturnType<typeof scoredEvent> {
  const hashes = hashesOf(evaluation.facts)
  const about = { state, evaluation, trigger, hashes, visitor: null }
  const made = scoredEvent({ ...about, evaluatedAt: startedAt, durationMs: 1, ...overrides })
  if (made.event.type !== 'SessionScored') throw new Error(made.event.type)
  return { ...made, data: made.event.data }
}

const codec = createCodec()

/** Encodes and decodes the decision. */
export function asRead({ event }: Pick<ReturnType<typeof scored>, 'event'>): SessionScored {
  const decoded = codec.decode(codec.encode(event))
  if (decoded.type !== 'SessionScored') throw new Error(decoded.type)
  return decoded.data
}

/** Returns the decision about a session or its state, as readers get it. */
export function decisionAbout(of: TestSession | SessionState, sources?: Sources): SessionScored {
  const state = 'session_id' in of ? of : stateOf(of)
  return asRead(scored(state, evaluateState(state, sources)))
}

export const slugs = ({ fired }: Pick<Evaluation, 'fired'>): string[] =>
  fired.map(({ slug }) => slug)

/** The signals that a decision names. */
export const signalsOf = (decision: Pick<SessionScored, 'signals_fired'> | undefined) =>
  (decision?.signals_fired ?? []).map(({ signal }) => signal)

/** All signals with their weights in the standard model. */
export const judgedSignals: FiredSignal[] = applyModel(standardModel, signalCatalogue)

/** Returns an evaluation in which these signals fired, regardless of the facts. */
export function evaluationOf(fired: FiredSignal[], facts: Facts): Evaluation {
  const signals = slugs({ fired })
  const score = scoreOf(standardModel, { signals, hasSnapshot: facts.snapshot !== null })
  return { model: standardModel, facts, fired, score }
}
