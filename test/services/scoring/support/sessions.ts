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

/** The state after the events; the first must open the session. */
export function stateAfter(events: SessionEvent[]): SessionState {
  const state = events.reduce<SessionState | undefined>(
    (known, event) => evolve(known, event),
    undefined,
  )
  if (!state) throw new Error('no events')
  return state
}

/** The state after a session's opening and its snapshot, with the behavior that came with it, channel by channel. */
export function stateOf(session: TestSession, behavior?: object): SessionState {
  const observations = { snapshot: session.client.snapshot, behavior }
  return stateAfter([...opened(session), batch(session, { observations })])
}

type Sources = Partial<Parameters<typeof evaluate>[0]>

/** Evaluates a state on a server that was taught and knows no networks. */
export function evaluateState(state: SessionState, sources: Sources = {}): Evaluation {
  const network = noNetwork.lookup(state.ip_address, startedAt)
  return evaluate({ network, learned: taught, ...sources, state })
}

/** Evaluates a client's snapshot and the behavior that came with it, as after another body. */
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

/** The decisions that events lead to, each a batch of records of its own. */
export function decisionsAfter(
  events: SessionEvent[],
  sources: Partial<Parameters<typeof createDecider>[1]> = {},
): { changed: Map<string, SessionState>; decisions: Decision[] } {
  const context = { learned: taught, network: noNetwork, now: startedAt, ...sources }
  const { apply, changed } = createDecider(new Map(), context)
  return { decisions: events.flatMap((event) => apply(event) ?? []), changed }
}

const trigger = {
  decisionId: 'evt_x',
  reason: 'first' as const,
  final: true,
  onlyOnChange: false,
  at: startedAt,
}

/** The final decision about a state, as scoring appends it. */
export function scored(
  state: SessionState,
  evaluation: Evaluation,
  some: Partial<Parameters<typeof scoredEvent>[0]> = {},
): { data: SessionScored } & ReturnType<typeof scoredEvent> {
  const hashes = hashesOf(evaluation.facts)
  const about = { state, evaluation, trigger, hashes, visitor: null }
  const made = scoredEvent({ ...about, evaluatedAt: startedAt, durationMs: 1, ...some })
  if (made.event.type !== 'SessionScored') throw new Error(made.event.type)
  return { ...made, data: made.event.data }
}

const codec = createCodec()

/** A decision as readers get it. */
export function asRead({ event }: Pick<ReturnType<typeof scored>, 'event'>): SessionScored {
  const decoded = codec.decode(codec.encode(event))
  if (decoded.type !== 'SessionScored') throw new Error(decoded.type)
  return decoded.data
}

/** The decision about a session or its state, as readers get it. */
export function decisionAbout(of: TestSession | SessionState, sources?: Sources): SessionScored {
  const state = 'session_id' in of ? of : stateOf(of)
  return asRead(scored(state, evaluateState(state, sources)))
}

export const slugs = ({ fired }: Pick<Evaluation, 'fired'>): string[] =>
  fired.map(({ slug }) => slug)

/** The signals that a decision names. */
export const signalsOf = (decision: Pick<SessionScored, 'signals_fired'> | undefined) =>
  (decision?.signals_fired ?? []).map(({ signal }) => signal)

/** Every signal as the standard model judges it. */
export const judgedSignals: FiredSignal[] = applyModel(standardModel, signalCatalogue)

/** As if these signals had fired, whatever the facts are. */
export function evaluationOf(fired: FiredSignal[], facts: Facts): Evaluation {
  const signals = slugs({ fired })
  const score = scoreOf(standardModel, { signals, hasSnapshot: facts.snapshot !== null })
  return { model: standardModel, facts, fired, score }
}
