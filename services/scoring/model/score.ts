import type { Verdict } from '../../../schemas/events.ts'
import { categories, type ModelSignal, type ScoringModel } from './model.ts'

/** Signals that count together, up to a limit: weak ones, moderate ones about input (`habits`), and trust. */
export type Group = 'weak' | 'habits' | 'trust'
type Limits = Record<Group, number>

/**
 * Why a score is not what the signals add up to. `cap`: nothing of another kind confirms what fired. `floor`: evidence
 * that is required is missing, as the named signal says. `groups`: more of a group fired than counts. `proven`: it is known
 * whose program it is, so that how it looks says no more.
 */
type Bound =
  | { kind: 'cap'; most: number }
  | { kind: 'floor'; least: number; signal: string }
  | { kind: 'groups'; limits: Partial<Limits> }
  | { kind: 'proven'; score: number; signal: string }

export interface Score {
  risk: number
  verdict: Verdict
  breakdown: Record<string, number>
  /** Why the score is not what the signals add up to. */
  bound: Bound | null
}

/** What a score follows from, besides the model. */
export interface Scored {
  /** The slugs of all that fired, in the order of the decision. One that the model does not know counts nothing. */
  signals: readonly string[]
  hasSnapshot: boolean
}

export type JudgedSignal = ModelSignal & { slug: string }

/**
 * The risk of what fired. A definitive signal decides alone. Everything else adds up as independent chances do. It
 * reaches the band of a bot only where signals of different channels confirm each other. Where required evidence is
 * missing the session stays inconclusive, whatever speaks for it.
 */
export function scoreOf(model: ScoringModel, { signals, hasSnapshot }: Scored): Score {
  const fired = judgedIn(model, signals)
  const { risk, bound } = riskOf(fired, { model, hasSnapshot })
  return { risk, verdict: verdictOf(risk), breakdown: breakdownOf(fired), bound }
}

export function judgedIn(model: ScoringModel, signals: readonly string[]): JudgedSignal[] {
  return signals.flatMap((slug) => {
    const signal = model.signals[slug]
    return signal ? [{ slug, ...signal }] : []
  })
}

// human 0-39, inconclusive 40-69, bot 70-100. They are no part of a model, so that a verdict means the same everywhere.
const bands = { inconclusive: 40, bot: 70 }
/** The highest score that is no bot. */
export const belowBot = bands.bot - 1

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
  if (proven) return { risk: proven.points, bound: boundOfProven(fired, proven) }
  const definitive = risks.filter(({ strength }) => strength === 'definitive')
  const evidence = evidenceOf(fired, caps)
  const capped = isConfirmed(risks, model) ? evidence : Math.min(evidence, caps.unconfirmed)
  const decided = Math.max(capped, ...definitive.map(({ points }) => points))
  // Without a snapshot there is nothing that could speak for a person.
  const reached = Math.max(decided, hasSnapshot ? 0 : floors.no_snapshot)
  const bound =
    boundOf(risks, { evidence, decided, reached }) ??
    (reached > evidence ? null : groupsOf(fired, caps))
  const least = bound?.kind === 'floor' ? bound.least : 0
  return { risk: Math.round(Math.max(reached, least)), bound }
}

// Any browser that is driven has markers of that, so what else fired says no more of a proven one.
const boundOfProven = (
  fired: JudgedSignal[],
  { points: score, slug: signal }: JudgedSignal,
): Bound | null => (fired.length > 1 ? { kind: 'proven', score, signal } : null)

function boundOf(
  risks: JudgedSignal[],
  { evidence, decided, reached }: { evidence: number; decided: number; reached: number },
): Bound | null {
  const [signal] = risks.toSorted((one, other) => (other.floor ?? 0) - (one.floor ?? 0))
  const least = signal?.floor ?? 0
  if (signal && least > reached) return { kind: 'floor', least, signal: signal.slug }
  return evidence > decided && decided < bands.bot ? { kind: 'cap', most: decided } : null
}

// The groups of which more fired than counts, and that would change the score.
function groupsOf(fired: JudgedSignal[], { weak, habits, trust }: Limits): Bound | null {
  const limits: Limits = { weak, habits, trust }
  const evidence = Math.round(evidenceOf(fired, limits))
  const counted = Object.entries(limits).filter(
    ([name]) => Math.round(evidenceOf(fired, { ...limits, [name]: Infinity })) !== evidence,
  )
  return counted.length > 0 ? { kind: 'groups', limits: Object.fromEntries(counted) } : null
}

function evidenceOf(fired: JudgedSignal[], limits: Limits): number {
  const trust = Math.min(limits.trust, sum(fired.filter(({ role }) => role === 'trust')))
  return Math.max(0, combine(parts(fired, limits)) - trust)
}

function parts(fired: JudgedSignal[], limits: Limits): number[] {
  const { weak, habits, others } = addedUp(fired)
  return [
    Math.min(limits.weak, chanceOf(weak)),
    Math.min(limits.habits, chanceOf(habits)),
    ...others.map(({ points }) => points),
  ]
}

/**
 * Risks that add up. Weak signals and habits of input count as one part each, so that many small oddities stay small:
 * machines that nobody sits at, together, still are not more than odd, and habits of input some people have, too.
 */
export function addedUp(
  fired: JudgedSignal[],
): Record<'weak' | 'habits' | 'others', JudgedSignal[]> {
  const risks = fired.filter(({ role, strength }) => role === 'risk' && strength !== 'definitive')
  const isHabit = ({ strength, category }: JudgedSignal) =>
    strength === 'moderate' && category === 'behavioral'
  return {
    weak: risks.filter(({ strength }) => strength === 'weak'),
    habits: risks.filter(isHabit),
    others: risks.filter((one) => one.strength !== 'weak' && !isHabit(one)),
  }
}

/**
 * Strong ones of different channels, or fewer with what else is seen of tools and input in further channels. Moderate
 * contradictions of identity do not count: user agent switchers make many at once.
 */
export function isConfirmed(risks: JudgedSignal[], { confirmation }: ScoringModel): boolean {
  const { strong_channels, supported } = confirmation
  const strong = channelsOf(risks.filter(({ strength }) => strength === 'strong'))
  const supports = ({ strength, category }: JudgedSignal) =>
    strength === 'moderate' && supported.categories.includes(category)
  const all = new Set([...strong, ...channelsOf(risks.filter(supports))])
  const isSupported = strong.size >= supported.strong_channels && all.size >= supported.channels
  return strong.size >= strong_channels || isSupported
}

const channelsOf = (signals: JudgedSignal[]) => new Set(signals.map(({ channel }) => channel))

function combine(chances: number[]): number {
  return 100 * (1 - chances.reduce((doubt, points) => doubt * (1 - points / 100), 1))
}

/** The chance that one of them is right. */
export const chanceOf = (signals: JudgedSignal[]): number =>
  combine(signals.map(({ points }) => points))

export function sum(signals: JudgedSignal[]): number {
  return signals.reduce((total, { points }) => total + points, 0)
}

function breakdownOf(fired: JudgedSignal[]): Record<string, number> {
  const risks = fired.filter(({ role }) => role === 'risk')
  return Object.fromEntries(
    categories.map((category) => [
      category,
      Math.round(chanceOf(risks.filter((one) => one.category === category))),
    ]),
  )
}
