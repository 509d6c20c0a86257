import { derivedId } from '../../../infra/ids.ts'
import type { ResolutionBasis, ResolutionMethod } from '../../../schemas/events.ts'
import { components, type Profile, type VisitorKeys } from './profile.ts'

export interface KnownVisitor {
  id: string
  first_seen_at: number
  last_seen_at: number
  sessions: number
  profile: Profile | null
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
}

export interface MatchInput {
  sessionId: string
  keys: VisitorKeys
  profile: Profile | null
  candidates: Candidates
}

// Alike enough to be the same device after an update of its browser.
const similarEnough = 0.86
// A second candidate this close makes the choice a guess.
const clearLead = 0.08
// More visitors than this under one key mean that the key tells nobody apart.
const commonKey = 8

/**
 * Which visitor a session belongs to: an id that the client kept, then the same strong anchors, then a close
 * likeness. Where two known visitors fit alike, a new one rather than a wrong one.
 */
export function matchVisitor(input: MatchInput): Match {
  return byContinuity(input) ?? byInstall(input) ?? byAnchors(input) ?? bySimilarity(input) ?? newcomer(input)
}

function byContinuity({ keys, candidates }: MatchInput): Match | undefined {
  for (const key of keys.presented) {
    const [visitor] = candidates.byKey(key)
    if (visitor) return known(visitor, 'continuity', 'deterministic', 99)
  }
  return undefined
}

function byInstall({ keys, candidates }: MatchInput): Match | undefined {
  const [visitor] = keys.install === null ? [] : candidates.byKey(keys.install)
  return visitor && known(visitor, 'native_persistent', 'deterministic', 98)
}

function byAnchors({ keys, profile, candidates }: MatchInput): Match | undefined {
  if (keys.anchors === null || !profile) return undefined
  const all = candidates.byKey(keys.anchors)
  const near = all.filter((one) => one.profile?.network === profile.network)
  const [only, second] = near.length > 0 ? near : all
  if (!only || second) return undefined
  return known(only, 'fingerprint', 'probabilistic', near.length > 0 ? 94 : 82)
}

function bySimilarity({ keys, profile, candidates }: MatchInput): Match | undefined {
  // Twins under the anchors stay twins under anything less.
  if (!profile || (keys.anchors !== null && candidates.byKey(keys.anchors).length > 1)) return undefined
  const found = keys.partial.map((key) => candidates.byKey(key)).filter((some) => some.length <= commonKey)
  const unique = [...new Map(found.flat().map((visitor) => [visitor.id, visitor])).values()]
  const ranked = unique
    .map((visitor) => ({ visitor, likeness: likeness(profile, visitor.profile) }))
    .sort((one, other) => other.likeness - one.likeness)
  const [best, next] = ranked
  if (!best || best.likeness < similarEnough) return undefined
  if (next && best.likeness - next.likeness < clearLead) return undefined
  return known(best.visitor, 'fingerprint_evolution', 'probabilistic', Math.round(best.likeness * 85))
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

/** 0-1: the weight of the components that agree among those known on both sides; a foreign network costs a little. */
export function likeness(one: Profile, other: Profile | null): number {
  if (!other?.distinctive) return 0
  let agreed = 0
  let compared = 0
  components.forEach(({ weight }, index) => {
    const [mine, theirs] = [one.components[index], other.components[index]]
    if (!mine || !theirs) return
    compared += weight
    if (mine === theirs) agreed += weight
  })
  const total = components.reduce((sum, { weight }) => sum + weight, 0)
  if (compared < total * 0.6) return 0
  return (agreed / compared) * (one.network === other.network ? 1 : 0.97)
}
