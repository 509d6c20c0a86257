import type { Behavior, Snapshot } from '../../../schemas/observations.ts'
import type { Facts } from '../session/facts.ts'

export const categories = ['environment', 'behavioral', 'fingerprint', 'integrity', 'network'] as const
export type Category = (typeof categories)[number]

export type Strength = 'weak' | 'moderate' | 'strong' | 'definitive'

/** The thing that a signal observes. Signals of one channel observe the same thing, so they do not confirm each other. */
export type Channel =
  | 'canvas'
  | 'app'
  | 'attestation'
  | 'clock'
  | 'completeness'
  | 'consistency'
  | 'console'
  | 'devices'
  | 'dispatch'
  | 'extensions'
  | 'form'
  | 'frames'
  | 'freshness'
  | 'functions'
  | 'globals'
  | 'graphics'
  | 'headers'
  | 'hints'
  | 'history'
  | 'identity'
  | 'instrumentation'
  | 'keyboard'
  | 'locale'
  | 'machine'
  | 'network'
  | 'plugins'
  | 'pointer'
  | 'pressure'
  | 'protocol'
  | 'replay'
  | 'screen'
  | 'scroll'
  | 'slowness'
  | 'switching'
  | 'touch'
  | 'user_agent'
  | 'velocity'
  | 'webdriver'
  | 'window'

/** One piece of evidence: a pure function of what is known about a session. */
export interface Definition {
  name: string
  channel: Channel
  role: 'risk' | 'trust' | 'context'
  category: Category
  strength: Strength
  /** 0-100: the risk that this alone means; of a trust signal what it takes away; 0 of context. */
  score: number
  /** The score of a session is at least this, whatever speaks for it. */
  atLeast?: number
  /** It depends on other sessions, which are counted last. */
  looksBack?: true
  /** The numbers that made it fire, of a signal of behaviour. */
  measured?(behavior: Behavior): string
  looksAt: string
  falsePositives: string
  fires(facts: Facts): boolean
}

/** Signals by their slugs, with what all of them have in common; one that differs in it says so itself. */
export function signals<const C extends Partial<Definition>, S extends string>(
  common: C,
  bySlug: Record<S, Omit<Definition, keyof C> & Partial<Definition>>,
): (Definition & { slug: S })[] {
  // `Object.keys` forgets which names they are, and the compiler that what is left out of a signal is in `common`.
  const slugs = Object.keys(bySlug) as S[]
  return slugs.map((slug) => ({ ...common, ...bySlug[slug], slug }) as unknown as Definition & { slug: S })
}

export function snapshot(test: (snapshot: Snapshot, facts: Facts) => boolean): Definition['fires'] {
  return (facts) => facts.snapshot !== null && test(facts.snapshot, facts)
}

export function inBrowser(test: (snapshot: Snapshot, facts: Facts) => boolean): Definition['fires'] {
  return snapshot((one, facts) => one.native === null && test(one, facts))
}

export function input(test: (behavior: Behavior, facts: Facts) => boolean): Definition['fires'] {
  return (facts) => facts.behavior !== null && facts.behavioral && test(facts.behavior, facts)
}

/** A mean or a spread as people read it; `-` where it is null. */
export function formatted(value: number | null, decimals = 1): string {
  return value === null ? '-' : String(Number(value.toFixed(decimals)))
}
