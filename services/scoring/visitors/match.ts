import { derivedId } from '../../../infra/ids.ts'
import type { ResolutionBasis, ResolutionMethod } from '../../../schemas/events.ts'
import { isOtherDevice } from './copied.ts'
import { constants, type MatchKind, type VisitorKeys } from './keys.ts'
import { type Comparison, compareProfiles, likenessBits, type SharedKey } from './likeness.ts'
import { type Profile, type Uniqueness, uniquenessOf } from './profile.ts'

export interface KnownVisitor {
  id: string
  first_seen_at: number
  last_seen_at: number
  sessions: number
  profile: Profile | null
  /** The key of the newest storage; see `storageKeyOf`. */
  storage_key: string | null
  /** The visitor whose sessions somebody gave to this one. */
  apart_from: string | null
}

export interface Candidates {
  byKey(key: string): KnownVisitor[]
}

export interface Match {
  visitor: KnownVisitor | undefined
  id: string
  method: ResolutionMethod
  basis: ResolutionBasis | null
  confidence: number
  /** It presents an id that was issued to another device. */
  isCopied?: true
}

export interface MatchInput {
  sessionId: string
  keys: VisitorKeys
  profile: Profile | null
  candidates: Candidates
  /** When the session began, epoch milliseconds. */
  openedAt: number
}

// Bits of evidence (likeness.ts) that are needed, by how well its profile tells a browser from others. `make replay`
// measures them.
const enough: Record<Uniqueness, number> = {
  distinctive: 0,
  uniform: 1,
  none: Number.POSITIVE_INFINITY,
}
/** The match key that would tell the machine from others, where there is one. */
const tellingKinds: Partial<Record<Uniqueness, MatchKind>> = {
  distinctive: 'machine',
  uniform: 'place',
}
// A second candidate this close, in bits, makes the choice a guess.
const clearLead = 2
const hourMs = 60 * 60 * 1000
// Equal machines agree in everything, so that bits cannot tell a machine that lost its storage from a second one. Time
// can: whoever was there within an hour may be there still, whatever the network, since office machines go home. Both
// times were chosen on one half of the simulated homes (bench/visitors/), and judged on another. A day of absence for
// every candidate would make whoever clears storage daily new each time, at nearly the same number of wrong visits.
const aliveMs = hourMs
// Within this time of a visitor a second machine of its kind is as likely as that its storage was lost.
const provenMs = 24 * hourMs

/** Which visitor a session belongs to: by an id that the client stored, else by its profile. In doubt a new one. */
export function matchVisitor(input: MatchInput): Match {
  const found = byContinuity(input)
  if (found?.visitor && isOtherDevice(found.visitor.profile, input.profile))
    return { ...(byMatchKeys(input) ?? newcomer(input)), isCopied: true }
  return found ?? byInstall(input) ?? byMatchKeys(input) ?? newcomer(input)
}

function byContinuity({ keys, candidates }: MatchInput): Match | undefined {
  for (const key of keys.presented) {
    // There are several only where somebody gave sessions of one client to two visitors.
    const [visitor] = candidates.byKey(key).toSorted((a, b) => b.last_seen_at - a.last_seen_at)
    if (visitor) return known(visitor, 'continuity', 'deterministic', 99)
  }
  return undefined
}

// An install id that was copied to another model proves nothing.
function byInstall({ keys, profile, candidates }: MatchInput): Match | undefined {
  const installed = keys.install === null ? [] : candidates.byKey(keys.install)
  const visitor = installed.find((one) => !isOtherModel(one.profile, profile))
  return visitor && known(visitor, 'native_persistent', 'deterministic', 98)
}

export function isOtherModel(one: Profile | null, other: Profile | null): boolean {
  if (!one || !other) return false
  const { changed } = compareProfiles(one, other)
  return constants.some((name) => changed.includes(name))
}

export interface Candidate {
  visitor: KnownVisitor
  comparison: Comparison
  /** The match keys that both have. */
  shared: SharedKey[]
  /** Bits. */
  evidence: number
  /** It was there at the same time, so its storage cannot be lost. */
  isPresent: boolean
  /** It began so lately that nothing tells yet whether its match keys are of one machine. */
  isUnproven: boolean
  /** Both have the match key that would tell the session's machine from others. */
  isAlike: boolean
}

function byMatchKeys(input: MatchInput): Match | undefined {
  const { profile } = input
  if (!profile) return undefined
  const [best, ...others] = rankCandidates(input, profile)
  const needed = bitsNeeded(profile)
  if (!best) return undefined
  const doubt = doubtOf(best, { others, needed })
  if (doubt === 'too_little_evidence') return undefined
  // It may be a known visitor; a new one is the lesser mistake.
  if (doubt) return { ...newcomer(input), basis: 'probabilistic', confidence: 50 }
  const method = best.comparison.changed.length === 0 ? 'fingerprint' : 'fingerprint_evolution'
  const confidence = Math.round(Math.min(94, 70 + 2 * (best.evidence - needed)))
  return known(best.visitor, method, 'probabilistic', confidence)
}

/** Infinite where the profile tells nobody from others. */
export const bitsNeeded = (profile: Profile): number => enough[uniquenessOf(profile)]

export type Doubt =
  | 'too_little_evidence'
  | 'present_elsewhere'
  | 'known_too_briefly'
  | 'look_of_several'
  | 'no_clear_lead'

/** Why the likeliest candidate is not taken. undefined = it is. */
export function doubtOf(
  best: Candidate,
  { others, needed }: { others: Candidate[]; needed: number },
): Doubt | undefined {
  if (best.evidence < needed) return 'too_little_evidence'
  if (best.isPresent) return 'present_elsewhere'
  if (best.isUnproven) return 'known_too_briefly'
  if (areSeveral([best, ...others].filter(({ isAlike }) => isAlike))) return 'look_of_several'
  const isRival = ({ visitor, evidence }: Candidate) =>
    best.evidence - evidence < clearLead && areTwo(best.visitor, visitor)
  return others.some(isRival) ? 'no_clear_lead' : undefined
}

const areSeveral = (some: Candidate[]): boolean =>
  some.some((one, i) => some.slice(i + 1).some((other) => areTwo(one.visitor, other.visitor)))

/** Visitors with a common match key, the likeliest first. */
export function rankCandidates(input: MatchInput, profile: Profile): Candidate[] {
  const { keys, candidates } = input
  const networks = keys.matchKeys.filter(({ kind }) => kind === 'network')
  const neighbors = Math.max(1, ...networks.map(({ key }) => candidates.byKey(key).length))
  return foundByKeys(input)
    .flatMap(({ visitor, shared }) =>
      visitor.profile
        ? [weighed({ ...input, visitor, shared, other: visitor.profile, profile, neighbors })]
        : [],
    )
    .sort(
      (one, other) =>
        other.evidence - one.evidence || other.visitor.last_seen_at - one.visitor.last_seen_at,
    )
}

function foundByKeys({ keys, candidates }: MatchInput) {
  const found = new Map<string, { visitor: KnownVisitor; shared: SharedKey[] }>()
  for (const { kind, key } of keys.matchKeys) {
    if (kind === 'network') continue
    const visitors = candidates.byKey(key)
    for (const visitor of visitors) {
      const one = found.get(visitor.id) ?? { visitor, shared: [] }
      found.set(visitor.id, {
        visitor,
        shared: [...one.shared, { kind, visitors: visitors.length }],
      })
    }
  }
  return [...found.values()]
}

interface ToWeigh extends Pick<Candidate, 'visitor' | 'shared'>, Pick<MatchInput, 'openedAt'> {
  profile: Profile
  other: Profile
  neighbors: number
}

function weighed({ visitor, shared, profile, other, neighbors, openedAt }: ToWeigh): Candidate {
  const comparison = compareProfiles(profile, other)
  const isSameNetwork = other.network === profile.network
  const uniqueness = uniquenessOf(profile)
  const evidence = likenessBits({ comparison, shared, uniqueness, isSameNetwork, neighbors })
  const telling = tellingKinds[uniqueness]
  return {
    visitor,
    comparison,
    shared,
    evidence,
    isPresent: visitor.last_seen_at > openedAt - aliveMs,
    isUnproven: visitor.first_seen_at > openedAt - provenMs,
    isAlike: shared.some(({ kind }) => kind === telling),
  }
}

// A browser that was not known again leaves a visitor that ends before the next one begins. Of two machines the second
// is seen before the first has been gone for long. Or somebody said that they are two.
function areTwo(one: KnownVisitor, other: KnownVisitor): boolean {
  if (one.apart_from === other.id || other.apart_from === one.id) return true
  return (
    one.first_seen_at < other.last_seen_at + provenMs &&
    other.first_seen_at < one.last_seen_at + provenMs
  )
}

function newcomer({ sessionId, keys, profile }: MatchInput): Match {
  const method = keys.install === null ? 'new' : 'native_new'
  const confidence = keys.install !== null ? 95 : profile?.distinctive ? 85 : 50
  return { visitor: undefined, id: derivedId('vid', sessionId), method, basis: null, confidence }
}

function known(
  visitor: KnownVisitor,
  method: ResolutionMethod,
  basis: ResolutionBasis,
  confidence: number,
): Match {
  return { visitor, id: visitor.id, method, basis, confidence }
}
