import { derivedId } from '../../../infra/ids.ts'
import type { ResolutionBasis, ResolutionMethod } from '../../../schemas/events.ts'
import { isDifferentDevice } from './copied.ts'
import { immutableTraits, type MatchKind, type VisitorKeys } from './keys.ts'
import { type Profile, type Uniqueness, uniquenessOf } from './profile.ts'
import { type Comparison, compareProfiles, type SharedKey, similarityBits } from './similarity.ts'

export interface KnownVisitor {
  id: string
  first_seen_at: number
  last_seen_at: number
  sessions: number
  profile: Profile | null
  /** Key of the newest client storage; see `storageKeyOf`. */
  storage_key: string | null
  /** Visitor whose sessions an operator moved to this one, because the two are different. */
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
  /** Set if the session presents an id that was issued to another device. */
  hasCopiedId?: true
}

export interface MatchInput {
  sessionId: string
  keys: VisitorKeys
  profile: Profile | null
  candidates: Candidates
  /** Start of the session, epoch milliseconds. */
  openedAt: number
}

// Bits of evidence (similarity.ts) that a match needs. `npm run replay` measures the error rates.
const minBits: Record<Uniqueness, number> = {
  distinctive: 0,
  uniform: 1,
  none: Number.POSITIVE_INFINITY,
}
/** The match key that distinguishes the machine from others, if there is one. */
const distinguishingKinds: Partial<Record<Uniqueness, MatchKind>> = {
  distinctive: 'machine',
  uniform: 'place',
}
// A second candidate this close, in bits, makes the choice a guess.
const clearLead = 2
const hourMs = 60 * 60 * 1000
// Identical machines agree in everything, so bits can't tell a machine that lost its storage from a second machine, but
// time can. A visitor seen within the last hour may still be active, on any network, since office machines go home.
// Both times were tuned on one half of the simulated homes (bench/visitors/) and tested on the other. Requiring a day
// of absence would make people who clear storage daily new each time, and prevent almost no wrong matches.
const presenceMs = hourMs
// This soon after a visitor's first session, another machine of the same kind is as likely as lost storage.
const probationMs = 24 * hourMs

/** Matches a session to a visitor by a stored id, else by its profile. If in doubt, returns a new visitor. */
export function matchVisitor(input: MatchInput): Match {
  const match = matchByContinuityId(input)
  if (match?.visitor && isDifferentDevice(match.visitor.profile, input.profile))
    return { ...(matchByProfile(input) ?? newVisitor(input)), hasCopiedId: true }
  return match ?? matchByInstallId(input) ?? matchByProfile(input) ?? newVisitor(input)
}

function matchByContinuityId({ keys, candidates }: MatchInput): Match | undefined {
  for (const key of keys.presented) {
    // A key has several visitors only if an operator split one client's sessions.
    const [visitor] = candidates.byKey(key).toSorted((a, b) => b.last_seen_at - a.last_seen_at)
    if (visitor) return existingVisitor(visitor, 'continuity', 'deterministic', 99)
  }
  return undefined
}

// An install id that was copied to another device model proves nothing.
function matchByInstallId({ keys, profile, candidates }: MatchInput): Match | undefined {
  const installed = keys.install === null ? [] : candidates.byKey(keys.install)
  const visitor = installed.find((candidate) => !isDifferentModel(candidate.profile, profile))
  return visitor && existingVisitor(visitor, 'native_persistent', 'deterministic', 98)
}

export function isDifferentModel(first: Profile | null, second: Profile | null): boolean {
  if (!first || !second) return false
  const { changed } = compareProfiles(first, second)
  return immutableTraits.some((name) => changed.includes(name))
}

export interface Candidate {
  visitor: KnownVisitor
  comparison: Comparison
  /** Match keys of both the session and the visitor. */
  shared: SharedKey[]
  /** Bits. */
  evidence: number
  /** True if the visitor was active at the same time, so its storage can't be lost. */
  isPresent: boolean
  /** True if the visitor is too new to tell whether its match keys belong to a single machine. */
  isUnproven: boolean
  /** True if the visitor has the match key that distinguishes the session's machine from others. */
  isAlike: boolean
}

function matchByProfile(input: MatchInput): Match | undefined {
  const { profile } = input
  if (!profile) return undefined
  const [best, ...others] = rankCandidates(input, profile)
  const needed = bitsNeeded(profile)
  if (!best) return undefined
  const doubt = doubtOf(best, { others, needed })
  if (doubt === 'too_little_evidence') return undefined
  // It may be the candidate, but a new visitor is the lesser mistake.
  if (doubt) return { ...newVisitor(input), basis: 'probabilistic', confidence: 50 }
  const method = best.comparison.changed.length === 0 ? 'fingerprint' : 'fingerprint_evolution'
  const confidence = Math.round(Math.min(94, 70 + 2 * (best.evidence - needed)))
  return existingVisitor(best.visitor, method, 'probabilistic', confidence)
}

/** Returns the bits that a match needs. Infinite if the profile can't identify anybody. */
export const bitsNeeded = (profile: Profile): number => minBits[uniquenessOf(profile)]

export type Doubt =
  | 'too_little_evidence'
  | 'present_elsewhere'
  | 'known_too_briefly'
  | 'look_of_several'
  | 'no_clear_lead'

/** Returns the reason why the likeliest candidate is rejected, or undefined if it is accepted. */
export function doubtOf(
  best: Candidate,
  { others, needed }: { others: Candidate[]; needed: number },
): Doubt | undefined {
  if (best.evidence < needed) return 'too_little_evidence'
  if (best.isPresent) return 'present_elsewhere'
  if (best.isUnproven) return 'known_too_briefly'
  if (includesDistinct([best, ...others].filter(({ isAlike }) => isAlike))) return 'look_of_several'
  const isRival = ({ visitor, evidence }: Candidate) =>
    best.evidence - evidence < clearLead && areDistinct(best.visitor, visitor)
  return others.some(isRival) ? 'no_clear_lead' : undefined
}

const includesDistinct = (candidates: Candidate[]): boolean =>
  candidates.some(({ visitor }, i) =>
    candidates.slice(i + 1).some((other) => areDistinct(visitor, other.visitor)),
  )

/** Returns the visitors that share a match key with the session, the likeliest first. */
export function rankCandidates(input: MatchInput, profile: Profile): Candidate[] {
  const { keys, candidates } = input
  const networks = keys.matchKeys.filter(({ kind }) => kind === 'network')
  const neighbors = Math.max(1, ...networks.map(({ key }) => candidates.byKey(key).length))
  return sharingMatchKeys(input)
    .flatMap(({ visitor, shared }) =>
      visitor.profile
        ? [weigh({ ...input, visitor, shared, earlier: visitor.profile, profile, neighbors })]
        : [],
    )
    .sort((a, b) => b.evidence - a.evidence || b.visitor.last_seen_at - a.visitor.last_seen_at)
}

function sharingMatchKeys({ keys, candidates }: MatchInput) {
  const byId = new Map<string, { visitor: KnownVisitor; shared: SharedKey[] }>()
  for (const { kind, key } of keys.matchKeys) {
    if (kind === 'network') continue
    const visitors = candidates.byKey(key)
    for (const visitor of visitors) {
      const shared = byId.get(visitor.id)?.shared ?? []
      byId.set(visitor.id, { visitor, shared: [...shared, { kind, visitors: visitors.length }] })
    }
  }
  return [...byId.values()]
}

interface Weighing extends Pick<Candidate, 'visitor' | 'shared'>, Pick<MatchInput, 'openedAt'> {
  /** Profile of the session. */
  profile: Profile
  /** Profile of the visitor. */
  earlier: Profile
  /** Number of visitors in the session's network. */
  neighbors: number
}

function weigh({ visitor, shared, profile, earlier, neighbors, openedAt }: Weighing): Candidate {
  const comparison = compareProfiles(profile, earlier)
  const isSameNetwork = earlier.network === profile.network
  const uniqueness = uniquenessOf(profile)
  const evidence = similarityBits({ comparison, shared, uniqueness, isSameNetwork, neighbors })
  const distinguishing = distinguishingKinds[uniqueness]
  return {
    visitor,
    comparison,
    shared,
    evidence,
    isPresent: visitor.last_seen_at > openedAt - presenceMs,
    isUnproven: visitor.first_seen_at > openedAt - probationMs,
    isAlike: shared.some(({ kind }) => kind === distinguishing),
  }
}

// Returns true if the visitors can't be one browser: both were active within a day, or an operator split them. A
// browser that was not recognized leaves a visitor that ends before its next one begins.
function areDistinct(a: KnownVisitor, b: KnownVisitor): boolean {
  if (a.apart_from === b.id || b.apart_from === a.id) return true
  return (
    a.first_seen_at < b.last_seen_at + probationMs && b.first_seen_at < a.last_seen_at + probationMs
  )
}

function newVisitor({ sessionId, keys, profile }: MatchInput): Match {
  const method = keys.install === null ? 'new' : 'native_new'
  const confidence = keys.install !== null ? 95 : profile?.distinctive ? 85 : 50
  return { visitor: undefined, id: derivedId('vid', sessionId), method, basis: null, confidence }
}

function existingVisitor(
  visitor: KnownVisitor,
  method: ResolutionMethod,
  basis: ResolutionBasis,
  confidence: number,
): Match {
  return { visitor, id: visitor.id, method, basis, confidence }
}
