import type { Behavior, Snapshot } from '../../../schemas/observations.ts'
import type { Facts } from '../session/facts.ts'

/** One piece of evidence: a pure function of what is known about a session. What it counts says the model. */
export interface Definition {
  name: string
  /** It depends on other sessions, which are counted last. */
  looksBack?: true
  /** The numbers that made it fire, of a signal of behaviour. */
  measured?(behavior: Behavior): string
  /** Stands behind the name in explanations, which are not sealed: no text that a client sent. */
  details?: Details
  looksAt: string
  falsePositives: string
  fires(facts: Facts): boolean
}

export type Details = (facts: Facts) => string | null

/** Signals by their slugs. */
export function signals<S extends string>(
  bySlug: Record<S, Definition>,
): (Definition & { slug: S })[] {
  // `Object.keys` forgets which names they are.
  const slugs = Object.keys(bySlug) as S[]
  return slugs.map((slug) => ({ ...bySlug[slug], slug }))
}

export function snapshot(test: (snapshot: Snapshot, facts: Facts) => boolean): Definition['fires'] {
  return (facts) => facts.snapshot !== null && test(facts.snapshot, facts)
}

export function inBrowser(
  test: (snapshot: Snapshot, facts: Facts) => boolean,
): Definition['fires'] {
  return snapshot((one, facts) => one.native === null && test(one, facts))
}

export function input(test: (behavior: Behavior, facts: Facts) => boolean): Definition['fires'] {
  return (facts) => facts.behavior !== null && facts.behavioral && test(facts.behavior, facts)
}

/** A mean or a spread as people read it; `-` where it is null. */
export function formatted(value: number | null, decimals = 1): string {
  return value === null ? '-' : String(Number(value.toFixed(decimals)))
}
