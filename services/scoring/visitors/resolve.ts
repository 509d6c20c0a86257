import { derivedId } from '../../../infra/ids.ts'
import type { Tx } from '../../../infra/postgres/pool.ts'
import { reassignedLink } from '../../../projections/sessions/apply-reassignments.ts'
import type { VisitorLink, VisitorLinked, VisitorSplit } from '../../../schemas/events.ts'
import type { Facts } from '../session/facts.ts'
import type { SessionState } from '../session/state.ts'
import { asGuess, withoutContinuityIds } from './copied.ts'
import {
  type ClientIds,
  clientIdsOf,
  linkedEvent,
  presentedKeys,
  storageKeyOf,
  visitorKeysOf,
} from './keys.ts'
import { reassignStates } from './links.ts'
import { type Match, matchVisitor } from './match.ts'
import { anchorsOf, profileOf, storageOf, vectorOf } from './profile.ts'
import { needsSplitCheck, type RecordedDecisions, sessionsToSplit } from './split.ts'
import { openVisitorIndex, type UnlinkedSession, type VisitorIndex } from './visitor-index.ts'

export interface ResolvedVisitor {
  link: VisitorLink
  /** Number of the visitor's sessions, including this one. */
  sessions: number
  /** True if the session presents an id or token that was issued to another device. */
  hasCopiedId: boolean
}

export interface Resolution {
  /** By session id. A session without a visitor has no entry. */
  visitors: Map<string, ResolvedVisitor>
  /** Links of sessions that had no visitor before. */
  linked: VisitorLinked[]
  /** Moves of sessions that turned out to belong to another visitor. */
  splits: VisitorSplit[]
  /** Holds the pending writes. */
  index: VisitorIndex
}

/** The parts of a decision that determine its visitor. */
interface UnresolvedDecision {
  state: SessionState
  evaluation: { facts: Facts }
}

interface Context {
  /** Decisions from before a crash. Their visitors take precedence over new matches. */
  recorded: RecordedDecisions
  /** Epoch milliseconds. */
  now: number
}

/** Links each session without a visitor to one. Sessions that have a visitor keep it. */
export async function resolveVisitors(
  tx: Tx,
  { decisions, ...context }: { decisions: UnresolvedDecision[] } & Context,
): Promise<Resolution> {
  const visitors = new Map<string, ResolvedVisitor>()
  const pending: PendingSession[] = []
  for (const decision of decisions) {
    const {
      session_id,
      visitor,
      visitor_sessions: sessions,
      copied_id: hasCopiedId = false,
    } = decision.state
    const link = visitor && hasCopiedId ? asGuess(visitor) : visitor
    if (link) visitors.set(session_id, { link, sessions, hasCopiedId })
    else pending.push(pendingSession(decision))
  }
  const index = await openVisitorIndex(tx, pending)
  const resolution: Resolution = { visitors, linked: [], splits: [], index }
  for (const session of pending)
    if (!visitors.has(session.sessionId)) await addVisitor(session, resolution, context)
  const { splits } = resolution
  if (splits.length > 0) await reassignStates(tx, splits)
  for (const split of splits) updateLink(visitors, split)
  return resolution
}

interface PendingSession extends UnlinkedSession {
  decision: UnresolvedDecision
  ids: ClientIds
}

function pendingSession(decision: UnresolvedDecision): PendingSession {
  const { session_id: sessionId, organization_id: organizationId, environment } = decision.state
  const profile = profileOf(decision.evaluation.facts)
  const ids = clientIdsOf(decision.state)
  const keys = visitorKeysOf(ids, profile)
  return { sessionId, decision, ids, keys, profile, organizationId, environment }
}

// Matches the session, and adds its visitor, link and splits to the resolution.
async function addVisitor(
  session: PendingSession,
  { visitors, linked, splits, index }: Resolution,
  { recorded, now }: Context,
): Promise<void> {
  const { sessionId, decision, keys, profile } = session
  const { state, evaluation } = decision
  const { snapshot } = evaluation.facts
  const recordedVisitor = recorded.visitors.get(sessionId)
  const newMatch = matchVisitor({
    sessionId,
    openedAt: state.created_at,
    keys,
    profile,
    candidates: index,
  })
  const { isNewStorage, moves } = await splitVisitor(session, { match: newMatch, index, now })
  splits.push(...moves)
  const match: Match = recordedVisitor
    ? { ...newMatch, ...recordedVisitor, confidence: recordedVisitor.confidence ?? 0 }
    : newMatch
  // Without a snapshot, only a stored id can identify the visitor.
  if (!snapshot && !recordedVisitor && !match.visitor) return
  const at = recordedVisitor?.identified_at ?? now
  const { ids, keys: linkKeys } = match.hasCopiedId ? withoutCopiedIds(session) : session
  const wasRecorded = recordedVisitor !== undefined
  const sessions = index.add({ ...session, keys: linkKeys, match, at, isNewStorage, wasRecorded })
  const { id, confidence, method, basis } = match
  const link: VisitorLink = {
    id,
    confidence,
    identified_at: at,
    method,
    basis,
    continuity_id: ids.issued,
    anchors: anchorsOf(snapshot),
    vector: vectorOf(profile),
    storage: storageOf(snapshot),
  }
  const hasCopiedId = match.hasCopiedId === true || state.copied_id === true
  visitors.set(sessionId, { link: hasCopiedId ? asGuess(link) : link, sessions, hasCopiedId })
  linked.push(linkedEvent(ids, { session_id: sessionId, visitor_id: id, linked_at: at, profile }))
}

function withoutCopiedIds(session: PendingSession): Pick<PendingSession, 'ids' | 'keys'> {
  const ids = withoutContinuityIds(session.ids)
  return { ids, keys: visitorKeysOf(ids, session.profile) }
}

/** Moves sessions to a new visitor if the client's stored id proves that they belong to somebody else (split.ts). */
async function splitVisitor(
  { sessionId, keys, ids }: PendingSession,
  { match, index, now }: { match: Match; index: VisitorIndex; now: number },
): Promise<{ isNewStorage: boolean; moves: VisitorSplit[] }> {
  const { visitor } = match
  if (!visitor || match.basis !== 'deterministic') return { isNewStorage: true, moves: [] }
  const presented = presentedKeys(keys)
  if (!needsSplitCheck(visitor, presented)) return { isNewStorage: false, moves: [] }
  const sessions = await index.flushAndReadSessions(visitor.id)
  const storageKey = storageKeyOf(keys) ?? sessionId
  const isNewStorage = !sessions.some(({ storage_key }) => storage_key === storageKey)
  const others = sessionsToSplit(visitor, presented, sessions)
  if (others.length === 0) return { isNewStorage, moves: [] }
  const to = derivedId('vid', 'split', sessionId)
  await index.reassign(others, { from: visitor.id, to })
  const { organization_id, environment } = ids
  const moves = others.map(
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
  return { isNewStorage, moves }
}

function updateLink(visitors: Map<string, ResolvedVisitor>, split: VisitorSplit): void {
  const resolved = visitors.get(split.session_id)
  if (!resolved) return
  const link = { ...resolved.link, ...reassignedLink(split) }
  visitors.set(split.session_id, { ...resolved, link })
}
