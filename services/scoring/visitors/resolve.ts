import type { Tx } from '../../../infra/postgres/pool.ts'
import type { VisitorLink } from '../../../schemas/events.ts'
import type { Draft } from '../drafts.ts'
import { openVisitorIndex, type Unresolved, type VisitorIndex } from './index.ts'
import { keysOf } from './keys.ts'
import { type Match, matchVisitor } from './match.ts'
import { anchorsOf, profileOf, storageOf, vectorOf } from './profile.ts'

/** A visitor as an earlier attempt at the same decision recorded it. */
export type RecordedVisitor = Pick<VisitorLink, 'id' | 'confidence' | 'identified_at' | 'method' | 'basis'>

export interface Resolved {
  link: VisitorLink
  /** How many sessions the visitor has, this one included. */
  sessions: number
}

export interface Resolution {
  /** By session id; a session without an entry has no visitor. */
  visitors: Map<string, Resolved>
  index: VisitorIndex
}

export interface ResolveInput {
  tx: Tx
  drafts: Draft[]
  /** Visitors of decisions that were appended before a crash, by decision id: they are kept. */
  recorded: Map<string, RecordedVisitor>
  now: number
}

/** Finds or makes the visitor of every session that has none yet. */
export async function resolveVisitors({ tx, drafts, recorded, now }: ResolveInput): Promise<Resolution> {
  const visitors = new Map<string, Resolved>()
  const open: (Unresolved & { draft: Draft })[] = []
  for (const draft of drafts) {
    const { session_id, visitor, visitor_sessions } = draft.state
    if (visitor) visitors.set(session_id, { link: visitor, sessions: visitor_sessions })
    else open.push(unresolved(draft))
  }
  const index = await openVisitorIndex(tx, open)
  for (const session of open) {
    const id = session.draft.state.session_id
    const resolved = visitors.get(id) ?? resolve({ session, index, recorded, now })
    if (resolved) visitors.set(id, resolved)
  }
  return { visitors, index }
}

function unresolved(draft: Draft): Unresolved & { draft: Draft } {
  const { state, evaluation } = draft
  const profile = profileOf(evaluation.facts)
  const keys = keysOf(state, profile)
  return { draft, keys, profile, organizationId: state.organization_id, environment: state.environment }
}

interface ResolveOne {
  session: Unresolved & { draft: Draft }
  index: VisitorIndex
  recorded: Map<string, RecordedVisitor>
  now: number
}

function resolve({ session, index, recorded, now }: ResolveOne): Resolved | undefined {
  const { draft, keys, profile } = session
  const { state, trigger, evaluation } = draft
  const found = matchVisitor({ sessionId: state.session_id, keys, profile, candidates: index })
  const earlier = recorded.get(trigger.decisionId)
  const match: Match = earlier ? { ...found, ...earlier, confidence: earlier.confidence ?? 0 } : found
  // Nothing was observed: only an id that the client kept can say who it is.
  if (!evaluation.facts.snapshot && !earlier && !match.visitor) return undefined
  const sessions = index.add({ ...session, match, at: now })
  const { snapshot } = evaluation.facts
  const link: VisitorLink = {
    id: match.id,
    confidence: match.confidence,
    identified_at: earlier?.identified_at ?? now,
    method: match.method,
    basis: match.basis,
    continuity_id: state.continuity_id,
    anchors: anchorsOf(snapshot),
    vector: vectorOf(profile),
    storage: storageOf(snapshot),
  }
  return { link, sessions }
}
