import type { Behavior, Snapshot } from '../../../schemas/observations.ts'
import type { Facts } from '../session/facts.ts'

/** A single piece of evidence, as a pure function of the facts about a session. The scoring model has its weight. */
export interface SignalDefinition {
  name: string
  /** Set if the signal depends on other sessions, which are counted after the first evaluation. */
  usesHistory?: true
  /** Returns the numbers that made an input signal fire. */
  numbers?(behavior: Behavior): string
  /** Returns text that is appended to the name. It is stored unencrypted, so it must not quote the client. */
  details?: SignalText
  looksAt: string
  falsePositives: string
  fires(facts: Facts): boolean
}

export type Fires = SignalDefinition['fires']
export type SignalText = (facts: Facts) => string | null

/** Adds the slugs to the signals. */
export function defineSignals<S extends string>(
  bySlug: Record<S, SignalDefinition>,
): (SignalDefinition & { slug: S })[] {
  // `Object.keys` loses the type of the names.
  const slugs = Object.keys(bySlug) as S[]
  return slugs.map((slug) => ({ ...bySlug[slug], slug }))
}

/** Fires only with a snapshot that passes the test. */
export function ifSnapshot(test: (snapshot: Snapshot, facts: Facts) => boolean): Fires {
  return (facts) => facts.snapshot !== null && test(facts.snapshot, facts)
}

/** Fires only with the snapshot of a browser that passes the test. */
export function ifBrowser(test: (snapshot: Snapshot, facts: Facts) => boolean): Fires {
  return ifSnapshot((snapshot, facts) => snapshot.native === null && test(snapshot, facts))
}

/** Fires only with input that passes the test. */
export function ifInput(test: (behavior: Behavior, facts: Facts) => boolean): Fires {
  return (facts) => facts.behavior !== null && facts.hasInput && test(facts.behavior, facts)
}

/** Formats a mean or spread. Returns `-` for null. */
export function formatMeasure(value: number | null, decimals = 1): string {
  return value === null ? '-' : String(Number(value.toFixed(decimals)))
}
