import { derivedId } from '../../../infra/ids.ts'
import type { Tx } from '../../../infra/postgres/pool.ts'
import { reassignedLink } from '../../../projections/sessions/apply-reassignments.ts'
import type { VisitorLink, VisitorLinked, VisitorSplit } from '../../../schemas/events.ts'
import type { Facts } from '../session/facts.ts'
import type { SessionState } from '../session/state.ts'
import { doubted, withoutPresented } from './copied.ts'
import { openVisitorIndex, type Unresolved, type VisitorIndex } from './index.ts'
import {
  type ClientIds,
  clientIdsOf,
  presentedKeys,
  storageKeyOf,
  visitorKeysOf,
  visitorLinked,
} from './keys.ts'
import { reassignStates } from './links.ts'
import { type Match, matchVisitor } from './match.ts'
import { anchorsOf, profileOf, storageOf, vectorOf } from './profile.ts'
import { mayBeTwo, type Recorded, sessionsToSplit } from './split.ts'

export interface Resolved {
  link: VisitorLink
  /** How many sessions the visitor has, this one included. */
  sessions: number
  /** The session presents an id or a token that was issued to another device. */
  isCopied: boolean
}

export interface Resolution {
  /** By session id; a session without an entry has no visitor. */
  visitors: Map<string, Resolved>
  /** The links of sessions that had no visitor before. */
  linked: VisitorLinked[]
  /** For the sessions that are another visitor's from now on. */
  splits: VisitorSplit[]
  index: VisitorIndex
}

/** A decision, as far as its session's visitor depends on it. */
interface Decision {
  state: SessionState
  evaluation: { facts: Facts }
}

interface Context {
  /** Visitors stay as they were recorded. */
  recorded: Recorded
  /** Epoch milliseconds. */
  now: number
}

/** Finds the visitors of sessions that have none yet. Those that have one keep it. */
export async function resolveVisitors(
  tx: Tx,
  { decisions, ...context }: { decisions: Decision[] } & Context,
): Promise<Resolution> {
  const visitors = new Map<string, Resolved>()
  const open: Unlinked[] = []
  for (const decision of decisions) {
    const {
      session_id,
      visitor,
      visitor_sessions: sessions,
      copied_id: isCopied = false,
    } = decision.state
    const link = visitor && isCopied ? doubted(visitor) : visitor
    if (link) visitors.set(session_id, { link, sessions, isCopied })
    else open.push(unlinked(decision))
  }
  const index = await openVisitorIndex(tx, open)
  const resolution: Resolution = { visitors, linked: [], splits: [], index }
  for (const session of open)
    if (!visitors.has(session.sessionId)) await resolve(session, resolution, context)
  const { splits } = resolution
  if (splits.length > 0) await reassignStates(tx, splits)
  for (const split of splits) relink(visitors, split)
  return resolution
}

interface Unlinked extends Unresolved {
  decision: Decision
  ids: ClientIds
}

function unlinked(decision: Decision): Unlinked {
  const { session_id: sessionId, organization_id: organizationId, environment } = decision.state
  const profile = profileOf(decision.evaluation.facts)
  const ids = clientIdsOf(decision.state)
  const keys = visitorKeysOf(ids, profile)
  return { sessionId, decision, ids, keys, profile, organizationId, environment }
}

async function resolve(
  session: Unlinked,
  { visitors, linked, splits, index }: Resolution,
  { recorded, now }: Context,
): Promise<void> {
  const { sessionId, decision, keys, profile } = session
  const { state, evaluation } = decision
  const { snapshot } = evaluation.facts
  const before = recorded.visitors.get(sessionId)
  const found = matchVisitor({
    sessionId,
    openedAt: state.created_at,
    keys,
    profile,
    candidates: index,
  })
  const { isNewStorage, split } = await separate(session, { match: found, index, now })
  splits.push(...split)
  const match: Match = before ? { ...found, ...before, confidence: before.confidence ?? 0 } : found
  // Nothing was observed, so that only an id that the client stored can say who it is.
  if (!snapshot && !before && !match.visitor) return
  const at = before?.identified_at ?? now
  const own = match.isCopied ? withoutId(session) : session
  const sessions = index.add({ ...own, match, at, isNewStorage, wasRecorded: before !== undefined })
  const { id, confidence, method, basis } = match
  const link: VisitorLink = {
    id,
    confidence,
    identified_at: at,
    method,
    basis,
    continuity_id: own.ids.issued,
    anchors: anchorsOf(snapshot),
    vector: vectorOf(profile),
    storage: storageOf(snapshot),
  }
  const isCopied = match.isCopied === true || state.copied_id === true
  visitors.set(sessionId, { link: isCopied ? doubted(link) : link, sessions, isCopied })
  linked.push(
    visitorLinked(own.ids, { session_id: sessionId, visitor_id: id, linked_at: at, profile }),
  )
}

function withoutId(session: Unlinked): Unlinked {
  const ids = withoutPresented(session.ids)
  return { ...session, ids, keys: visitorKeysOf(ids, session.profile) }
}

/**
 * Where the client proves who it is by an id, it may prove as well that sessions of others were taken for its visitor's.
 * Those get a visitor of their own.
 */
async function separate(
  { sessionId, keys, ids }: Unlinked,
  { match, index, now }: { match: Match; index: VisitorIndex; now: number },
): Promise<{ isNewStorage: boolean; split: VisitorSplit[] }> {
  const { visitor } = match
  if (!visitor || match.basis !== 'deterministic') return { isNewStorage: true, split: [] }
  const presented = presentedKeys(keys)
  if (!mayBeTwo(visitor, presented)) return { isNewStorage: false, split: [] }
  const sessions = await index.sessionsOf(visitor.id)
  const storageKey = storageKeyOf(keys) ?? sessionId
  const isNewStorage = !sessions.some((one) => one.storage_key === storageKey)
  const others = sessionsToSplit(visitor, presented, sessions)
  if (others.length === 0) return { isNewStorage, split: [] }
  const to = derivedId('vid', 'split', sessionId)
  await index.reassign(others, { from: visitor.id, to })
  const { organization_id, environment } = ids
  const split = others.map(
    (session_id): VisitorSplit => ({
      session_id,
      organization_id,
      environment,
      visitor_id: to,
      earlier_visitor_id: visitor.id,
      cause: 'continuity_returned',
      event_id: derivedId('evt', 'split', session_id, to),
      confidence: 85,
      split_at: now,
    }),
  )
  return { isNewStorage, split }
}

function relink(visitors: Map<string, Resolved>, split: VisitorSplit): void {
  const resolved = visitors.get(split.session_id)
  if (!resolved) return
  const link = { ...resolved.link, ...reassignedLink(split) }
  visitors.set(split.session_id, { ...resolved, link })
}
