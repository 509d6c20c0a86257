import type { Behavior, Snapshot } from '../../../schemas/observations.ts'
import type { Facts } from '../facts.ts'

/** The parts of a score's breakdown; docs/scoring.md says what each covers. */
export const categories = ['environment', 'behavioral', 'fingerprint', 'integrity', 'network'] as const
export type Category = (typeof categories)[number]

export type SignalRole = 'risk' | 'trust' | 'context'
export type Strength = 'weak' | 'moderate' | 'strong' | 'definitive'

/** Signals of one family look at the same thing, so that two of them do not confirm each other. */
export type Family =
  | 'automation'
  | 'headless'
  | 'machine'
  | 'consistency'
  | 'tamper'
  | 'behavior'
  | 'protocol'
  | 'headers'
  | 'network'
  | 'native'
  | 'trust'

/** One piece of evidence: a pure function of what is known about a session. */
export interface Signal {
  slug: string
  /** As a person reads it. */
  name: string
  family: Family
  role: SignalRole
  category: Category
  strength: Strength
  /** 0-100: the risk that this alone means; of a trust signal what it takes away; 0 of context. */
  score: number
  /** For docs/scoring.md. */
  looksAt: string
  falsePositives: string
  fires(facts: Facts): boolean
}

/** A test of the snapshot; without one there is no evidence either way. */
export function snapshot(test: (snapshot: Snapshot, facts: Facts) => boolean): Signal['fires'] {
  return (facts) => facts.snapshot !== null && test(facts.snapshot, facts)
}

/** A test of a browser's snapshot; apps are not browsers. */
export function inBrowser(test: (snapshot: Snapshot, facts: Facts) => boolean): Signal['fires'] {
  return snapshot((one, facts) => one.native === null && test(one, facts))
}

/** A test of the session's input; without any there is no evidence either way. */
export function input(test: (behavior: Behavior, facts: Facts) => boolean): Signal['fires'] {
  return (facts) => facts.behavior !== null && facts.behavioral && test(facts.behavior, facts)
}
