import type { Verdict } from '../../schemas/events.ts'
import type { Facts } from './facts.ts'
import { categories, type Family, type Signal } from './signals/signal.ts'

/** Counts up when the same evidence can lead to another score. */
export const scoringVersion = '1'

/** human 0-39, inconclusive 40-69, bot 70-100. */
const bands = { inconclusive: 40, bot: 70 }
/** Machines that nobody sits at and habits of tools, together, still are not more than odd. */
const weakCap = 38
/** Behaviour alone makes a session doubtful, never a bot. */
const behaviorCap = 60
const trustCap = 18
/** From these points on, two strong signals of one family confirm each other. */
const selfEvident = 55
const unknownScore = 50

export interface Score {
  risk: number
  verdict: Verdict
  /** Points 0-100 of each category. */
  breakdown: Record<string, number>
}

/**
 * The risk of what fired. A definitive signal decides alone. Everything else adds up as independent chances do, and
 * reaches the band of a bot only where strong signals confirm each other: two of different families, of which
 * behaviour is one, or two so strong that nothing honest is known to cause them.
 */
export function score(fired: Signal[], facts: Facts): Score {
  const breakdown = breakdownOf(fired)
  const risk = riskOf(fired, facts)
  return { risk, verdict: verdictOf(risk), breakdown }
}

export function verdictOf(risk: number): Verdict {
  if (risk >= bands.bot) return 'bot'
  return risk >= bands.inconclusive ? 'inconclusive' : 'human'
}

function riskOf(fired: Signal[], facts: Facts): number {
  const risks = fired.filter(({ role }) => role === 'risk')
  const definitive = risks.filter(({ strength }) => strength === 'definitive')
  const trust = Math.min(trustCap, sum(fired.filter(({ role }) => role === 'trust')))
  const evidence = Math.max(0, combine(groups(risks)) - trust)
  const capped = isConfirmed(risks) ? evidence : Math.min(evidence, bands.bot - 1)
  // Without a snapshot there is nothing that could speak for a person.
  const floor = facts.snapshot ? 0 : unknownScore
  return Math.round(Math.max(capped, floor, ...definitive.map((signal) => signal.score)))
}

/** Weak signals and behaviour count as one group each, so that many small oddities stay small. */
function groups(risks: Signal[]): number[] {
  const weak = risks.filter(({ strength }) => strength === 'weak')
  const others = risks.filter(({ strength }) => strength === 'moderate' || strength === 'strong')
  const behavior = others.filter(({ family }) => family === 'behavior')
  const rest = others.filter(({ family }) => family !== 'behavior')
  return [
    Math.min(weakCap, combine(weak.map((signal) => signal.score))),
    Math.min(behaviorCap, combine(behavior.map((signal) => signal.score))),
    ...rest.map((signal) => signal.score),
  ]
}

function isConfirmed(risks: Signal[]): boolean {
  const strong = risks.filter(({ strength }) => strength === 'strong')
  const families = new Set<Family>(strong.map(({ family }) => family))
  return families.size >= 2 || strong.filter((signal) => signal.score >= selfEvident).length >= 2
}

/** The chance that at least one of independent pieces of evidence is right, in points. */
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
