import { derivedId } from '../../../infra/ids.ts'
import type { Tx } from '../../../infra/postgres/pool.ts'
import { reassignedLink } from '../../../projections/sessions/apply-reassignments.ts'
import type { VisitorLink, VisitorLinked, VisitorSplit } from '../../../schemas/events.ts'
import type { Draft } from '../decide.ts'
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
import { mayBeTwo, type RecordedVisitor, sessionsToSplit } from './split.ts'

export interface Resolved {
  link: VisitorLink
  sessions: number
  /** It shows an id or a token that another device was given. */
  isCopied: boolean
}

export interface Resolution {
  /** By session id; a session without an entry has no visitor. */
  visitors: Map<string, Resolved>
  /** Of the sessions that had no visitor before. */
  linked: VisitorLinked[]
  /** Of the sessions that were given another visitor. */
  splits: VisitorSplit[]
  index: VisitorIndex
}

interface ResolveInput {
  tx: Tx
  drafts: Draft[]
  // Visitors of decisions that were appended before a crash, by decision id: they are kept.
  recorded: Map<string, RecordedVisitor>
  now: number
}

export async function resolveVisitors({ tx, drafts, recorded, now }: ResolveInput): Promise<Resolution> {
  const visitors = new Map<string, Resolved>()
  const open: ToResolve[] = []
  for (const draft of drafts) {
    const { session_id, visitor, visitor_sessions: sessions, copied_id: isCopied = false } = draft.state
    const link = visitor && isCopied ? doubted(visitor) : visitor
    if (link) visitors.set(session_id, { link, sessions, isCopied })
    else open.push(unresolved(draft))
  }
  const index = await openVisitorIndex(tx, open)
  const linked: VisitorLinked[] = []
  const splits: VisitorSplit[] = []
  for (const session of open) {
    const { sessionId: session_id } = session
    const resolved = visitors.has(session_id)
      ? undefined
      : await resolve({ session, index, recorded, now, onSplit: (some) => splits.push(...some) })
    if (!resolved) continue
    visitors.set(session_id, resolved)
    const { id: visitor_id, identified_at: linked_at } = resolved.link
    linked.push(
      visitorLinked(resolved.shown, { session_id, visitor_id, linked_at, profile: session.profile }),
    )
  }
  if (splits.length > 0) await reassignStates(tx, splits)
  for (const split of splits) relink(visitors, split)
  return { visitors, linked, splits, index }
}

function unresolved(draft: Draft): ToResolve {
  const { state, evaluation } = draft
  const profile = profileOf(evaluation.facts)
  const { session_id: sessionId, organization_id: organizationId, environment } = state
  const shown = clientIdsOf(state)
  const keys = visitorKeysOf(shown, profile)
  return { sessionId, draft, shown, keys, profile, organizationId, environment }
}

interface ToResolve extends Unresolved {
  draft: Draft
  shown: ClientIds
}

interface ResolveOne {
  session: ToResolve
  index: VisitorIndex
  recorded: Map<string, RecordedVisitor>
  now: number
  onSplit: (splits: VisitorSplit[]) => void
}

async function resolve({
  session,
  index,
  recorded,
  now,
  onSplit,
}: ResolveOne): Promise<(Resolved & Pick<ToResolve, 'shown'>) | undefined> {
  const { sessionId, draft, keys, profile } = session
  const { state, trigger, evaluation } = draft
  const earlier = recorded.get(trigger.decisionId)
  const first = matchVisitor({ sessionId, openedAt: state.created_at, keys, profile, candidates: index })
  const { match: found, isNewStorage, splits } = await settled({ session, match: first, index, now })
  onSplit(splits)
  const match: Match = earlier ? { ...found, ...earlier, confidence: earlier.confidence ?? 0 } : found
  // Nothing was observed: only an id that the client kept can say who it is.
  if (!evaluation.facts.snapshot && !earlier && !match.visitor) return undefined
  const at = earlier?.identified_at ?? now
  const own = match.isCopied ? withoutId(session) : session
  const sessions = index.add({ ...own, match, at, isNewStorage, wasRecorded: earlier !== undefined })
  const { snapshot } = evaluation.facts
  const link: VisitorLink = {
    id: match.id,
    confidence: match.confidence,
    identified_at: at,
    method: match.method,
    basis: match.basis,
    continuity_id: own.shown.issued,
    anchors: anchorsOf(snapshot),
    vector: vectorOf(profile),
    storage: storageOf(snapshot),
  }
  const isCopied = match.isCopied === true || state.copied_id === true
  return { link: isCopied ? doubted(link) : link, sessions, isCopied, shown: own.shown }
}

function withoutId(session: ToResolve): ToResolve {
  const shown = withoutPresented(session.shown)
  return { ...session, shown, keys: visitorKeysOf(shown, session.profile) }
}

interface Settling {
  session: ToResolve
  match: Match
  index: VisitorIndex
  now: number
}

interface Settled {
  match: Match
  isNewStorage: boolean
  splits: VisitorSplit[]
}

// A client that shows who it is may show that others were taken for it.
async function settled({ session, match, index, now }: Settling): Promise<Settled> {
  const { visitor } = match
  const presented = presentedKeys(session.keys)
  if (!visitor || match.basis !== 'deterministic') return { match, isNewStorage: true, splits: [] }
  if (!mayBeTwo(visitor, presented)) return { match, isNewStorage: false, splits: [] }
  const sessions = await index.sessionsOf(visitor.id)
  const lineage = storageKeyOf(session.keys) ?? session.sessionId
  const isNewStorage = !sessions.some((one) => one.lineage === lineage)
  const parted = sessionsToSplit(visitor, presented, sessions)
  if (parted.length === 0) return { match, isNewStorage, splits: [] }
  const to = derivedId('vid', 'split', session.sessionId)
  await index.move(parted, { from: visitor.id, to })
  return { match, isNewStorage, splits: splitEvents(parted, { session, from: visitor.id, to, now }) }
}

interface Between {
  session: ToResolve
  from: string
  to: string
  now: number
}

function splitEvents(sessionIds: string[], { session, from, to, now }: Between): VisitorSplit[] {
  const { organization_id, environment } = session.shown
  return sessionIds.map((session_id) => ({
    ...{ session_id, organization_id, environment, visitor_id: to, earlier_visitor_id: from },
    cause: 'continuity_returned',
    event_id: derivedId('evt', 'split', session_id, to),
    confidence: 85,
    split_at: now,
  }))
}

function relink(visitors: Map<string, Resolved>, split: VisitorSplit): void {
  const resolved = visitors.get(split.session_id)
  if (resolved)
    visitors.set(split.session_id, { ...resolved, link: { ...resolved.link, ...reassignedLink(split) } })
}
