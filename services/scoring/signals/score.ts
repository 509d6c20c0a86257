import type { Verdict } from '../../../schemas/events.ts'
import { type Facts, type FactsInput, readFacts } from '../session/facts.ts'
import { type Signal, signalCatalogue } from './catalogue.ts'
import { categories } from './signal.ts'

/** Signals that count together, up to a limit: weak ones, moderate ones about input (`habits`), and trust. */
export type Group = 'weak' | 'habits' | 'trust'

/**
 * Why a score is not what the signals add up to. `cap`: nothing of another kind confirms what fired. `floor`: evidence
 * that is required is missing, as a signal says. `groups`: more of a group fired than counts.
 */
export type Bound =
  | { kind: 'cap'; most: number }
  | { kind: 'floor'; least: number; signal: Signal }
  | { kind: 'groups'; limits: Partial<Record<Group, number>> }

export interface Evaluation {
  facts: Facts
  fired: Signal[]
  score: Score
}

/** By the session's own observations. Nothing is known of other sessions, unless `input` has it. */
export function evaluate(input: FactsInput): Evaluation {
  const facts = readFacts(input)
  const fired = signalCatalogue.filter((signal) => signal.fires(facts))
  return { facts, fired, score: score(fired, facts) }
}

/**
 * The same evidence, once it is known what other sessions have in common with this one. Only signals that look at
 * others are tried again, because there are some ten of them and each decision is evaluated so.
 */
export function withHistory(
  own: Evaluation,
  history: Pick<Facts, 'visitorSessions' | 'repeats' | 'near'> & { isCopied?: boolean | undefined },
): Evaluation {
  const facts = { ...own.facts, ...history, isCopied: own.facts.isCopied || history.isCopied === true }
  const before = new Set(own.fired)
  const fires = (signal: Signal) => (signal.looksBack ? signal.fires(facts) : before.has(signal))
  const fired = signalCatalogue.filter(fires)
  return { facts, fired, score: score(fired, facts) }
}

/** Counts up when the same evidence can lead to another score. */
export const scoringVersion = '4'

// human 0-39, inconclusive 40-69, bot 70-100.
const bands = { inconclusive: 40, bot: 70 }
// Machines that nobody sits at, together, still are not more than odd; habits of input some people have, too.
const limits: Record<Group, number> = { weak: 38, habits: 60, trust: 18 }
/** A session without a snapshot has at least this score. */
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
 * reaches the band of a bot only where signals of different channels confirm each other. Where required evidence is
 * missing the session stays inconclusive, whatever speaks for it.
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
