import { derivedId } from '../../../infra/ids.ts'
import type { Db } from '../../../infra/postgres/pool.ts'
import { type ComponentCounts, createComponentCounter } from './component-counts.ts'
import {
  type EarlierVisitors,
  findEarlierVisitors,
  findLinkFacts,
  type LinkFacts,
} from './earlier-visitors.ts'
import {
  bitsNeeded,
  type Candidate,
  type Doubt,
  doubtOf,
  isDifferentModel,
  type KnownVisitor,
  rankCandidates,
} from './match.ts'
import type { ComponentName, Profile } from './profile.ts'
import { compareProfiles } from './similarity.ts'

type DecidedBy = 'kept_id' | 'install_id' | 'look' | 'correction' | 'doubt' | 'nobody_before'

// `corrected` and `known_since`: today's data would choose the candidate.
type LossReason =
  | Doubt
  | 'kept_id_decides'
  | 'other_model'
  | 'less_likely'
  | 'corrected'
  | 'known_since'

interface ExplainedComponent {
  name: ComponentName
  /** Number of the `of_visitors` that have it. null = the session lacks the component. */
  visitors_with_it: number | null
}

interface ExplainedCandidate {
  visitor_id: string
  /** Evidence; null = infinite, or no match key in common. */
  bits: number | null
  same_network: boolean | null
  /** null = the session or the visitor has no profile. */
  components: Record<'agreed' | 'changed' | 'unknown', ExplainedComponent[]> | null
}

/** The reason for the choice of a session's visitor, reconstructed from earlier sessions that still exist. */
export interface LinkExplanation {
  session_id: string
  decided_by: DecidedBy
  /** null = the profile can't identify anybody. */
  bits_needed: number | null
  /** Number of visitors that the component counts are based on. */
  of_visitors: number
  /** null = the session started a new visitor. */
  chosen: ExplainedCandidate | null
  /** The likeliest candidate that was rejected. */
  next: (ExplainedCandidate & { lost_because: LossReason }) | null
}

/** Returns an explainer that resolves to null if the session has no visitor or has expired. */
export function createLinkExplainer(
  db: Db,
): (sessionId: string) => Promise<LinkExplanation | null> {
  const componentCountsIn = createComponentCounter(db)
  return async (sessionId) => {
    const link = await findLinkFacts(db, sessionId)
    if (!link) return null
    const { organization_id: organizationId, environment } = link
    const [earlier, componentCounts] = await Promise.all([
      findEarlierVisitors(db, link),
      componentCountsIn({ organizationId, environment }),
    ])
    return explainLink(link, { earlier, componentCounts })
  }
}

export function explainLink(
  link: LinkFacts,
  { earlier, componentCounts }: { earlier: EarlierVisitors; componentCounts: ComponentCounts },
): LinkExplanation {
  const { session_id, visitor_id, profile } = link
  const ranked = rankedCandidates(link, earlier)
  const linked = ranked.find(({ visitor }) => visitor.id === visitor_id)
  const others = ranked.filter((candidate) => candidate !== linked)
  const copied = copiedFrom(link, earlier)
  const decidedBy = deciderOf(link, { isFirst: !copied && others.length === 0 })
  const runnerUp = copied ?? runnerUpOf({ decidedBy, linked, others, profile })
  const explain = (match: WeighedVisitor) => explainCandidate(match, { profile, componentCounts })
  const isNewVisitor = decidedBy === 'doubt' || decidedBy === 'nobody_before'
  const visitor = earlier.byId(visitor_id)
  const bits = linked?.evidence ?? null
  return {
    session_id,
    decided_by: decidedBy,
    bits_needed: profile && rounded(bitsNeeded(profile)),
    of_visitors: componentCounts.visitors,
    chosen: isNewVisitor ? null : explain({ id: visitor_id, visitor, bits }),
    next: runnerUp ? { ...explain(runnerUp), lost_because: runnerUp.lossReason } : null,
  }
}

function rankedCandidates(link: LinkFacts, candidates: EarlierVisitors): Candidate[] {
  const { session_id: sessionId, keys, profile, opened_at: openedAt } = link
  return profile ? rankCandidates({ sessionId, keys, profile, candidates, openedAt }, profile) : []
}

// After a correction the method is `existing`, or the visitor's id is not derived from the session's.
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

interface WeighedVisitor {
  id: string
  visitor: KnownVisitor | undefined
  bits: number | null
}

interface RunnerUp extends WeighedVisitor {
  lossReason: LossReason
}

function copiedFrom(
  { method, keys, profile }: LinkFacts,
  earlier: EarlierVisitors,
): RunnerUp | undefined {
  if (method !== 'native_new' || keys.install === null) return undefined
  const installed = earlier.byKey(keys.install)
  const visitor = installed.find((candidate) => isDifferentModel(candidate.profile, profile))
  return visitor && { id: visitor.id, visitor, bits: null, lossReason: 'other_model' }
}

interface Ranking {
  decidedBy: DecidedBy
  /** Candidate that the session is linked to. */
  linked: Candidate | undefined
  others: Candidate[]
  profile: Profile | null
}

function runnerUpOf({
  decidedBy,
  linked,
  others: [best, ...others],
  profile,
}: Ranking): RunnerUp | undefined {
  if (!best || !profile) return undefined
  const { visitor, evidence: bits } = best
  const lost = (lossReason: LossReason) => ({ id: visitor.id, visitor, bits, lossReason })
  if (decidedBy === 'kept_id' || decidedBy === 'install_id') return lost('kept_id_decides')
  if (decidedBy === 'look' && linked && linked.evidence >= bits) return lost('less_likely')
  const doubt = doubtOf(best, { others, needed: bitsNeeded(profile) })
  return lost(doubt ?? (decidedBy === 'correction' ? 'corrected' : 'known_since'))
}

function explainCandidate(
  { id, visitor, bits }: WeighedVisitor,
  { profile, componentCounts }: { profile: Profile | null; componentCounts: ComponentCounts },
): ExplainedCandidate {
  const visitorProfile = visitor?.profile
  const candidate = { visitor_id: id, bits: rounded(bits), same_network: null, components: null }
  if (!profile || !visitorProfile) return candidate
  const { agreed, changed, unknown } = compareProfiles(profile, visitorProfile)
  const counts = (names: ComponentName[]) =>
    names.map((name) => ({ name, visitors_with_it: componentCounts.countSame(name, profile) }))
  return {
    ...candidate,
    same_network: profile.network === visitorProfile.network,
    components: { agreed: counts(agreed), changed: counts(changed), unknown: counts(unknown) },
  }
}

const rounded = (bits: number | null): number | null =>
  bits !== null && Number.isFinite(bits) ? Math.round(bits * 10) / 10 : null
