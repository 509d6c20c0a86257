import type { Verdict } from '../../../schemas/events.ts'
import { categories, type ModelSignal, type ScoringModel } from './model.ts'

/** Signals whose sum is limited: weak ones, moderate ones about input (`habits`), and trust. */
export type Group = 'weak' | 'habits' | 'trust'
type Limits = Record<Group, number>

/**
 * The reason why a score differs from the sum of its signals. `cap`: no other channel confirms the signals. `floor`:
 * the named signal reports that required evidence is missing. `groups`: a group reached its limit. `proven`: the
 * program was identified, so other signals add nothing.
 */
type Bound =
  | { kind: 'cap'; max: number }
  | { kind: 'floor'; min: number; signal: string }
  | { kind: 'groups'; limits: Partial<Limits> }
  | { kind: 'proven'; score: number; signal: string }

export interface Score {
  risk: number
  verdict: Verdict
  breakdown: Record<string, number>
  /** null = the score is the sum of its signals. */
  bound: Bound | null
}

/** Everything besides the model that determines a score. */
export interface ScoreInput {
  /** Slugs of the fired signals, in the order of the decision. Slugs that the model lacks are ignored. */
  signals: readonly string[]
  hasSnapshot: boolean
}

export type JudgedSignal = ModelSignal & { slug: string }

/**
 * Returns the risk score of the fired signals. A definitive signal decides alone. All others combine like independent
 * probabilities, and reach the verdict `bot` only if signals of different channels confirm each other. If required
 * evidence is missing, the session stays inconclusive, regardless of trust signals.
 */
export function scoreOf(model: ScoringModel, { signals, hasSnapshot }: ScoreInput): Score {
  const fired = modelSignalsOf(model, signals)
  const { risk, bound } = riskOf(fired, { model, hasSnapshot })
  return { risk, verdict: verdictOf(risk), breakdown: breakdownOf(fired), bound }
}

export function modelSignalsOf(model: ScoringModel, signals: readonly string[]): JudgedSignal[] {
  return signals.flatMap((slug) => {
    const signal = model.signals[slug]
    return signal ? [{ slug, ...signal }] : []
  })
}

// human 0-39, inconclusive 40-69, bot 70-100. Not part of a model, so that a verdict means the same everywhere.
const bands = { inconclusive: 40, bot: 70 }
/** Highest score below the verdict `bot`. */
export const maxScoreBelowBot = bands.bot - 1

export function verdictOf(risk: number): Verdict {
  if (risk >= bands.bot) return 'bot'
  return risk >= bands.inconclusive ? 'inconclusive' : 'human'
}

function riskOf(
  fired: JudgedSignal[],
  { model, hasSnapshot }: { model: ScoringModel; hasSnapshot: boolean },
): Pick<Score, 'risk' | 'bound'> {
  const { caps, floors, proven: provable } = model
  const risks = fired.filter(({ role }) => role === 'risk')
  const proven = risks.find(({ slug }) => provable.includes(slug))
  if (proven) return { risk: proven.points, bound: provenBound(fired, proven) }
  const definitive = risks.filter(({ strength }) => strength === 'definitive')
  const evidence = evidenceOf(fired, caps)
  const capped = isConfirmed(risks, model) ? evidence : Math.min(evidence, caps.unconfirmed)
  const decided = Math.max(capped, ...definitive.map(({ points }) => points))
  // Without a snapshot there is no evidence for a person.
  const reached = Math.max(decided, hasSnapshot ? 0 : floors.no_snapshot)
  const bound =
    boundOf(risks, { evidence, decided, reached }) ??
    (reached > evidence ? null : groupsBound(fired, caps))
  const min = bound?.kind === 'floor' ? bound.min : 0
  return { risk: Math.round(Math.max(reached, min)), bound }
}

// Returns null if no other signal fired. Automation markers add nothing, because every automated browser has them.
const provenBound = (
  fired: JudgedSignal[],
  { points: score, slug: signal }: JudgedSignal,
): Bound | null => (fired.length > 1 ? { kind: 'proven', score, signal } : null)

function boundOf(
  risks: JudgedSignal[],
  { evidence, decided, reached }: { evidence: number; decided: number; reached: number },
): Bound | null {
  const [signal] = risks.toSorted((a, b) => (b.floor ?? 0) - (a.floor ?? 0))
  const min = signal?.floor ?? 0
  if (signal && min > reached) return { kind: 'floor', min, signal: signal.slug }
  return evidence > decided && decided < bands.bot ? { kind: 'cap', max: decided } : null
}

// Returns the group limits that changed the score.
function groupsBound(fired: JudgedSignal[], { weak, habits, trust }: Limits): Bound | null {
  const limits: Limits = { weak, habits, trust }
  const evidence = Math.round(evidenceOf(fired, limits))
  const reached = Object.entries(limits).filter(
    ([name]) => Math.round(evidenceOf(fired, { ...limits, [name]: Infinity })) !== evidence,
  )
  return reached.length > 0 ? { kind: 'groups', limits: Object.fromEntries(reached) } : null
}

function evidenceOf(fired: JudgedSignal[], limits: Limits): number {
  const trust = Math.min(limits.trust, totalPoints(fired.filter(({ role }) => role === 'trust')))
  return Math.max(0, combine(parts(fired, limits)) - trust)
}

function parts(fired: JudgedSignal[], limits: Limits): number[] {
  const { weak, habits, others } = groupRisks(fired)
  return [
    Math.min(limits.weak, combinedRisk(weak)),
    Math.min(limits.habits, combinedRisk(habits)),
    ...others.map(({ points }) => points),
  ]
}

/**
 * Groups the risk signals. Weak signals and input habits are limited as a group, so many small oddities don't add up:
 * some machines are unusual, and some people have unusual input habits.
 */
export function groupRisks(
  fired: JudgedSignal[],
): Record<'weak' | 'habits' | 'others', JudgedSignal[]> {
  const risks = fired.filter(({ role, strength }) => role === 'risk' && strength !== 'definitive')
  const isHabit = ({ strength, category }: JudgedSignal) =>
    strength === 'moderate' && category === 'behavioral'
  return {
    weak: risks.filter(({ strength }) => strength === 'weak'),
    habits: risks.filter(isHabit),
    others: risks.filter((signal) => signal.strength !== 'weak' && !isHabit(signal)),
  }
}

/**
 * Returns true if enough channels have strong signals, or fewer do and moderate signals of the supported categories
 * bring in more channels. Moderate contradictions of identity don't count: a user agent switcher causes many at once.
 */
export function isConfirmed(risks: JudgedSignal[], { confirmation }: ScoringModel): boolean {
  const { strong_channels, supported } = confirmation
  const strong = channelsOf(risks.filter(({ strength }) => strength === 'strong'))
  const supports = ({ strength, category }: JudgedSignal) =>
    strength === 'moderate' && supported.categories.includes(category)
  const total = new Set([...strong, ...channelsOf(risks.filter(supports))])
  const isSupported = strong.size >= supported.strong_channels && total.size >= supported.channels
  return strong.size >= strong_channels || isSupported
}

const channelsOf = (signals: JudgedSignal[]) => new Set(signals.map(({ channel }) => channel))

function combine(chances: number[]): number {
  return 100 * (1 - chances.reduce((doubt, points) => doubt * (1 - points / 100), 1))
}

/** Returns the combined probability, 0-100, of independent signals. */
export const combinedRisk = (signals: JudgedSignal[]): number =>
  combine(signals.map(({ points }) => points))

export function totalPoints(signals: JudgedSignal[]): number {
  return signals.reduce((total, { points }) => total + points, 0)
}

function breakdownOf(fired: JudgedSignal[]): Record<string, number> {
  const risks = fired.filter(({ role }) => role === 'risk')
  return Object.fromEntries(
    categories.map((category) => [
      category,
      Math.round(combinedRisk(risks.filter((signal) => signal.category === category))),
    ]),
  )
}
