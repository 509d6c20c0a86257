import { derivedId } from '../../../infra/ids.ts'
import type { Db } from '../../../infra/postgres/pool.ts'
import { type Commonness, createCommonness } from './commonness.ts'
import {
  type EarlierVisitors,
  findEarlierVisitors,
  findLinkFacts,
  type LinkFacts,
} from './earlier.ts'
import { compareProfiles } from './likeness.ts'
import {
  bitsNeeded,
  type Candidate,
  type Doubt,
  doubtOf,
  isOtherModel,
  type KnownVisitor,
  rankCandidates,
} from './match.ts'
import type { ComponentName, Profile } from './profile.ts'

type DecidedBy = 'kept_id' | 'install_id' | 'look' | 'correction' | 'doubt' | 'nobody_before'

// The last two would be chosen with what is known today.
type LostBecause =
  | Doubt
  | 'kept_id_decides'
  | 'other_model'
  | 'less_likely'
  | 'corrected'
  | 'known_since'

interface ExplainedComponent {
  name: ComponentName
  /** How many of `of_visitors` have it. null = the session does not have the component. */
  visitors_with_it: number | null
}

interface ExplainedCandidate {
  visitor_id: string
  /** null = no finite number of them, or no match key in common. */
  bits: number | null
  same_network: boolean | null
  /** null = the session or the visitor has no profile. */
  components: Record<'agreed' | 'changed' | 'unknown', ExplainedComponent[]> | null
}

/** Why a session is of its visitor: by what is known today of the sessions before it. */
export interface LinkExplanation {
  session_id: string
  decided_by: DecidedBy
  /** null = nobody is found by its profile. */
  bits_needed: number | null
  /** How many were counted. */
  of_visitors: number
  /** null = the session began a visitor. */
  chosen: ExplainedCandidate | null
  /** The likeliest of the others. */
  next: (ExplainedCandidate & { lost_because: LostBecause }) | null
}

/** Resolves to null where the session has no visitor, or has ended. */
export function createLinkExplainer(
  db: Db,
): (sessionId: string) => Promise<LinkExplanation | null> {
  const commonnessIn = createCommonness(db)
  return async (sessionId) => {
    const link = await findLinkFacts(db, sessionId)
    if (!link) return null
    const { organization_id: organizationId, environment } = link
    const [earlier, commonness] = await Promise.all([
      findEarlierVisitors(db, link),
      commonnessIn({ organizationId, environment }),
    ])
    return explained(link, { earlier, commonness })
  }
}

export function explained(
  link: LinkFacts,
  { earlier, commonness }: { earlier: EarlierVisitors; commonness: Commonness },
): LinkExplanation {
  const { session_id, visitor_id, profile } = link
  const ranked = rankedFor(link, earlier)
  const own = ranked.find(({ visitor }) => visitor.id === visitor_id)
  const others = ranked.filter((one) => one !== own)
  const copied = copiedFrom(link, earlier)
  const decidedBy = deciderOf(link, { isFirst: !copied && others.length === 0 })
  const loser = copied ?? loserOf({ decidedBy, own, others, profile })
  const described = (one: Weighed) => describe(one, { profile, commonness })
  const began = decidedBy === 'doubt' || decidedBy === 'nobody_before'
  const visitor = earlier.byId(visitor_id)
  return {
    session_id,
    decided_by: decidedBy,
    bits_needed: profile && rounded(bitsNeeded(profile)),
    of_visitors: commonness.visitors,
    chosen: began ? null : described({ id: visitor_id, visitor, bits: own?.evidence ?? null }),
    next: loser ? { ...described(loser), lost_because: loser.because } : null,
  }
}

function rankedFor(link: LinkFacts, candidates: EarlierVisitors): Candidate[] {
  const { session_id: sessionId, keys, profile, opened_at: openedAt } = link
  return profile ? rankCandidates({ sessionId, keys, profile, candidates, openedAt }, profile) : []
}

// A correction says that a session is a new one of a visitor that it did not begin, or one of an existing visitor.
function deciderOf(
  { session_id, visitor_id, method }: LinkFacts,
  { isFirst }: { isFirst: boolean },
): DecidedBy {
  switch (method) {
    case 'continuity':
      return 'kept_id'
    case 'native_persistent':
      return 'install_id'
    case 'fingerprint':
    case 'fingerprint_evolution':
      return 'look'
    case 'existing':
      return 'correction'
    default:
      if (visitor_id !== derivedId('vid', session_id)) return 'correction'
      return isFirst ? 'nobody_before' : 'doubt'
  }
}

interface Weighed {
  id: string
  visitor: KnownVisitor | undefined
  bits: number | null
}

interface Loser extends Weighed {
  because: LostBecause
}

function copiedFrom(
  { method, keys, profile }: LinkFacts,
  earlier: EarlierVisitors,
): Loser | undefined {
  if (method !== 'native_new' || keys.install === null) return undefined
  const visitor = earlier.byKey(keys.install).find((one) => isOtherModel(one.profile, profile))
  return visitor && { id: visitor.id, visitor, bits: null, because: 'other_model' }
}

interface Ranked {
  decidedBy: DecidedBy
  own: Candidate | undefined
  others: Candidate[]
  profile: Profile | null
}

function loserOf({
  decidedBy,
  own,
  others: [best, ...others],
  profile,
}: Ranked): Loser | undefined {
  if (!best || !profile) return undefined
  const { visitor, evidence: bits } = best
  const lost = (because: LostBecause) => ({ id: visitor.id, visitor, bits, because })
  if (decidedBy === 'kept_id' || decidedBy === 'install_id') return lost('kept_id_decides')
  if (decidedBy === 'look' && own && own.evidence >= bits) return lost('less_likely')
  const doubt = doubtOf(best, { others, needed: bitsNeeded(profile) })
  return lost(doubt ?? (decidedBy === 'correction' ? 'corrected' : 'known_since'))
}

function describe(
  { id, visitor, bits }: Weighed,
  { profile, commonness }: { profile: Profile | null; commonness: Commonness },
): ExplainedCandidate {
  const other = visitor?.profile
  const nothing = { visitor_id: id, bits: rounded(bits), same_network: null, components: null }
  if (!profile || !other) return nothing
  const { agreed, changed, unknown } = compareProfiles(profile, other)
  const counted = (names: ComponentName[]) =>
    names.map((name) => ({ name, visitors_with_it: commonness.withSame(name, profile) }))
  return {
    ...nothing,
    same_network: profile.network === other.network,
    components: { agreed: counted(agreed), changed: counted(changed), unknown: counted(unknown) },
  }
}

const rounded = (bits: number | null): number | null =>
  bits !== null && Number.isFinite(bits) ? Math.round(bits * 10) / 10 : null
