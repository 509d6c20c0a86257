import { derivedId } from '../../infra/ids.ts'
import type { NetworkSource } from '../../infra/ip/network.ts'
import type { SimulationKey } from '../../infra/wire/collect/simulation.ts'
import type { Verdict } from '../../schemas/events.ts'
import type { LearnedAnswers } from './answers.ts'
import {
  type AllowsMinimal,
  type Bound,
  categories,
  type Facts,
  type FactsInput,
  type Group,
  readFacts,
  type Signal,
} from './facts.ts'
import { evolve, type SessionEvent, type SessionState } from './session-state.ts'
import { answerSignals } from './signals/answers.ts'
import { automationSignals, tamperSignals } from './signals/automation.ts'
import { behaviorSignals, trustSignals } from './signals/behavior.ts'
import { nativeSignals, networkSignals, protocolSignals } from './signals/connection.ts'
import { consistencySignals, headerSignals } from './signals/consistency.ts'
import { headlessSignals, machineSignals } from './signals/headless.ts'
import { type Hashes, hashesOf, repeatSignals } from './signals/repeats.ts'
import { primitiveSignals } from './signals/tamper.ts'
import weights from './weights.json' with { type: 'json' }

export interface Draft {
  state: SessionState
  /** Of the event that asked for it. */
  traceparent: string | undefined
  trigger: Trigger
  evaluation: Evaluation
  hashes: Hashes
}

export interface Drafts {
  changed: Map<string, SessionState>
  drafts: Draft[]
}

interface Drafting extends Drafts {
  // `traceparent`: the trace that a decision belongs to which the event asks for.
  apply(event: SessionEvent, traceparent?: string): void
}

interface DraftInput {
  known: Map<string, SessionState>
  network: NetworkSource
  learned: LearnedAnswers
  simulationKey?: SimulationKey | undefined
  allowsMinimal?: AllowsMinimal | undefined
  now: number
}

/** Goes through a partition's events, one at a time so that a caller can pause between them. No I/O. */
export function startDrafting({ known, ...sources }: DraftInput): Drafting {
  const changed = new Map<string, SessionState>()
  const drafts: Draft[] = []

  function apply(event: SessionEvent, traceparent?: string): void {
    const id = event.data.session_id
    const before = changed.get(id) ?? known.get(id)
    // Already forgotten, so it was final; ended once more while scoring was behind.
    if (!before && event.type === 'SessionIdled') return
    const after = evolve(before, event)
    if (after !== before) changed.set(id, after)
    const trigger = triggerOf({ before, after, event })
    const draft = trigger && draftOf({ state: after, trigger, traceparent, ...sources })
    if (!draft) return
    drafts.push(draft)
    changed.set(id, withDecision(after, draft.trigger, draft.evaluation.score.verdict))
  }
  return { apply, changed, drafts }
}

interface DraftOf extends Omit<DraftInput, 'known'> {
  state: SessionState
  trigger: Trigger
  traceparent: string | undefined
}

function draftOf({ state, trigger, traceparent, network, now, ...known }: DraftOf): Draft | undefined {
  const evaluation = evaluate({ state, network: network.lookup(state.ip_address, now), ...known })
  // What others did is looked up for decisions only, so that both verdicts are of what the session itself shows.
  const isSame = evaluation.score.verdict === state.verdict
  if (trigger.onlyOnChange && isSame) return undefined
  return { state, trigger, traceparent, evaluation, hashes: hashesOf(evaluation.facts) }
}

export const idleAfterMs = 30 * 60 * 1000

export interface Trigger {
  decisionId: string
  final: boolean
  /** Only a changed verdict makes a decision. */
  onlyOnChange: boolean
  at: number
  /** Hash of the document that handed off. */
  handOffDocument?: string
}

interface StateChange {
  before: SessionState | undefined
  after: SessionState
  event: SessionEvent
}

// What an event asks for. A hand-off and the end of a session make final decisions. The first snapshot makes a
// provisional one. So does any later batch that changes the verdict, until a final decision was made.
function triggerOf({ before, after, event }: StateChange): Trigger | undefined {
  switch (event.type) {
    case 'ResultRequested':
      return handOff(before, after, event.data)
    case 'SessionIdled':
      return idled(after, event.data)
    case 'BatchReceived':
      return batch(before, after, event.data)
    default:
      return undefined
  }
}

type Data<T extends SessionEvent['type']> = Extract<SessionEvent, { type: T }>['data']

// A redelivered body of a hand-off has its decision already; the session's first event is never a repeat.
function handOff(
  before: SessionState | undefined,
  after: SessionState,
  event: Data<'ResultRequested'>,
): Trigger | undefined {
  if (after === before) return undefined
  const { decision_id: decisionId, received_at: at, document_id_hash: handOffDocument } = event
  return { decisionId, final: true, onlyOnChange: false, at, handOffDocument }
}

// Ignored when the session is final or a body arrived after the scheduler looked.
function idled(after: SessionState, event: Data<'SessionIdled'>): Trigger | undefined {
  if (after.final) return undefined
  if (event.reason === 'idle' && after.last_activity_at > event.idled_at - idleAfterMs) return undefined
  return { decisionId: event.decision_id, final: true, onlyOnChange: false, at: event.idled_at }
}

function batch(
  before: SessionState | undefined,
  after: SessionState,
  event: Data<'BatchReceived'>,
): Trigger | undefined {
  const hasNothingNew = after === before || after.snapshot === null
  if (hasNothingNew || after.final) return undefined
  const decisionId = derivedId('evt', event.event_id)
  return { decisionId, final: false, onlyOnChange: after.decisions > 0, at: event.received_at }
}

function withDecision(state: SessionState, trigger: Trigger, verdict: Verdict): SessionState {
  const final = state.final || trigger.final
  return {
    ...state,
    decisions: state.decisions + 1,
    verdict,
    final,
    final_at: final ? (state.final_at ?? trigger.at) : null,
  }
}

export interface Evaluation {
  facts: Facts
  fired: Signal[]
  score: Score
}

export function evaluate(input: FactsInput): Evaluation {
  const facts = readFacts(input)
  return weigh(facts, fire(facts))
}

/** The same evidence, once it is known what other sessions have in common with this one. */
export function withHistory(
  own: Evaluation,
  history: Pick<Facts, 'visitorSessions' | 'repeats' | 'near'> & { isCopied?: boolean | undefined },
): Evaluation {
  const facts = { ...own.facts, ...history, isCopied: own.facts.isCopied || history.isCopied === true }
  const before = new Set(own.fired)
  const fires = (signal: Signal) => (signal.looksBack ? signal.fires(facts) : before.has(signal))
  return weigh(facts, signalCatalogue.filter(fires))
}

function weigh(facts: Facts, fired: Signal[]): Evaluation {
  return { facts, fired, score: score(fired, facts) }
}

/** Counts up when the same evidence can lead to another score. */
export const scoringVersion = '4'

// human 0-39, inconclusive 40-69, bot 70-100.
const bands = { inconclusive: 40, bot: 70 }
// Machines that nobody sits at, together, still are not more than odd; habits of input some people have, too.
const limits: Record<Group, number> = { weak: 38, habits: 60, trust: 18 }
/** Of a session without a snapshot, at least. */
export const unknownScore = 50

export interface Score {
  risk: number
  verdict: Verdict
  breakdown: Record<string, number>
  /** Why the score is not what the signals add up to. */
  bound: Bound | null
}

/**
 * The risk of what fired. A definitive signal decides alone. Everything else adds up as independent chances do. It
 * reaches the band of a bot only where signals of different channels confirm each other. What has to be earned stays
 * inconclusive as long as it is not, whatever speaks for the session.
 */
export function score(fired: Signal[], facts: Pick<Facts, 'snapshot'>): Score {
  const { risk, bound } = riskOf(fired, facts)
  return { risk, verdict: verdictOf(risk), breakdown: breakdownOf(fired), bound }
}

export function verdictOf(risk: number): Verdict {
  if (risk >= bands.bot) return 'bot'
  return risk >= bands.inconclusive ? 'inconclusive' : 'human'
}

function riskOf(fired: Signal[], facts: Pick<Facts, 'snapshot'>): Pick<Score, 'risk' | 'bound'> {
  const risks = fired.filter(({ role }) => role === 'risk')
  const definitive = risks.filter(({ strength }) => strength === 'definitive')
  const evidence = evidenceOf(fired, limits)
  const capped = isConfirmed(risks) ? evidence : Math.min(evidence, bands.bot - 1)
  const decided = Math.max(capped, ...definitive.map((signal) => signal.score))
  // Without a snapshot there is nothing that could speak for a person.
  const reached = Math.max(decided, facts.snapshot ? 0 : unknownScore)
  const bound =
    boundOf(risks, { evidence, decided, reached }) ?? (reached > evidence ? null : groupsOf(fired))
  const least = bound?.kind === 'floor' ? bound.least : 0
  return { risk: Math.round(Math.max(reached, least)), bound }
}

function boundOf(
  risks: Signal[],
  { evidence, decided, reached }: { evidence: number; decided: number; reached: number },
): Bound | null {
  const [signal] = risks.toSorted((one, other) => (other.atLeast ?? 0) - (one.atLeast ?? 0))
  const least = signal?.atLeast ?? 0
  if (signal && least > reached) return { kind: 'floor', least, signal }
  return evidence > decided && decided < bands.bot ? { kind: 'cap', most: decided } : null
}

// The groups of which more fired than counts, and that would change the score.
function groupsOf(fired: Signal[]): Bound | null {
  const evidence = Math.round(evidenceOf(fired, limits))
  const counted = Object.entries(limits).filter(
    ([name]) => Math.round(evidenceOf(fired, { ...limits, [name]: Infinity })) !== evidence,
  )
  return counted.length > 0 ? { kind: 'groups', limits: Object.fromEntries(counted) } : null
}

function evidenceOf(fired: Signal[], limits: Record<Group, number>): number {
  const trust = Math.min(limits.trust, sum(fired.filter(({ role }) => role === 'trust')))
  return Math.max(0, combine(parts(fired, limits)) - trust)
}

// Weak signals and habits of input count as one part each, so that many small oddities stay small.
function parts(fired: Signal[], limits: Record<Group, number>): number[] {
  const risks = fired.filter(({ role }) => role === 'risk')
  const weak = risks.filter(({ strength }) => strength === 'weak')
  const isHabit = ({ strength, category }: Signal) => strength === 'moderate' && category === 'behavioral'
  const isPlain = ({ strength }: Signal) => strength === 'moderate' || strength === 'strong'
  const rest = risks.filter((signal) => isPlain(signal) && !isHabit(signal))
  return [
    Math.min(limits.weak, combine(weak.map((signal) => signal.score))),
    Math.min(limits.habits, combine(risks.filter(isHabit).map((signal) => signal.score))),
    ...rest.map((signal) => signal.score),
  ]
}

// Two strong ones of different channels, or one with what else is seen of tools and input in two further channels.
// Moderate contradictions of identity do not count: user agent switchers make many at once.
function isConfirmed(risks: Signal[]): boolean {
  const strong = channelsOf(risks.filter(({ strength }) => strength === 'strong'))
  const isOfTools = ({ category }: Signal) => category === 'behavioral' || category === 'environment'
  const moderate = channelsOf(risks.filter((one) => one.strength === 'moderate' && isOfTools(one)))
  return strong.size >= 2 || (strong.size === 1 && new Set([...strong, ...moderate]).size >= 3)
}

const channelsOf = (signals: Signal[]) => new Set(signals.map(({ channel }) => channel))

function combine(scores: number[]): number {
  return 100 * (1 - scores.reduce((doubt, points) => doubt * (1 - points / 100), 1))
}

function sum(signals: Signal[]): number {
  return signals.reduce((total, signal) => total + signal.score, 0)
}

function breakdownOf(fired: Signal[]): Record<string, number> {
  const risks = fired.filter(({ role }) => role === 'risk')
  return Object.fromEntries(
    categories.map((category) => [
      category,
      Math.round(combine(risks.filter((one) => one.category === category).map((one) => one.score))),
    ]),
  )
}

const judgedByHand: Signal[] = [
  ...automationSignals,
  ...headlessSignals,
  ...tamperSignals,
  ...primitiveSignals,
  ...consistencySignals,
  ...answerSignals,
  ...protocolSignals,
  ...headerSignals,
  ...networkSignals,
  ...machineSignals,
  ...behaviorSignals,
  ...nativeSignals,
  ...repeatSignals,
  ...trustSignals,
]

const points: Record<string, number> = weights

/** Every signal, which docs/reference/signals.md lists, with the points that were fitted (bench/detection/fit.ts). */
export const signalCatalogue: (Signal & { prior: number })[] = judgedByHand.map((signal) => ({
  ...signal,
  prior: signal.score,
  score: points[signal.slug] ?? signal.score,
}))

export function fire(facts: Facts): Signal[] {
  return signalCatalogue.filter((signal) => signal.fires(facts))
}
