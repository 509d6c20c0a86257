import type { Behavior, Snapshot } from '../../../schemas/observations.ts'
import type { Facts } from '../session/facts.ts'

/** A signal: one piece of evidence, as a pure function of the facts about a session. The model has its weight. */
export interface Definition {
  name: string
  /** Set if it depends on other sessions, which are counted after the first evaluation. */
  looksBack?: true
  /** Returns the numbers that made a behavioral signal fire. */
  measured?(behavior: Behavior): string
  /** Returns text that is appended to the name. It is stored unencrypted, so it must not quote the client. */
  details?: Details
  looksAt: string
  falsePositives: string
  fires(facts: Facts): boolean
}

export type Details = (facts: Facts) => string | null

/** Returns a list of the signals, with their slugs. */
export function signals<S extends string>(
  bySlug: Record<S, Definition>,
): (Definition & { slug: S })[] {
  // `Object.keys` loses the type of the names.
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

/** Formats a mean or spread. Returns `-` for null. */
export function formatted(value: number | null, decimals = 1): string {
  return value === null ? '-' : String(Number(value.toFixed(decimals)))
}
