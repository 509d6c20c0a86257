import type { VisitorLink } from '../../../schemas/events.ts'
import type { KnownVisitor } from './match.ts'

type RecordedVisitor = Pick<VisitorLink, 'id' | 'confidence' | 'identified_at' | 'method' | 'basis'>

// A visitor is a chain of client storages. Each storage was linked by its profile, on the assumption that the previous
// one was lost. If a client presents an earlier storage again, it was not lost, so the later ones belong to somebody
// else, and the visitor is split.

export interface DecisionRef {
  decisionId: string
  sessionId: string
}

/** Decisions that were appended to the log before a crash lost the matching states. */
export interface RecordedDecisions {
  decisionIds: ReadonlySet<string>
  /** Ids of sessions with a final decision. */
  final: ReadonlySet<string>
  /** By session id. */
  visitors: ReadonlyMap<string, RecordedVisitor>
}

/** A session of a visitor. Times are epoch milliseconds. */
export interface LinkedSession {
  session_id: string
  /** Equal for all sessions of one client storage; see `storageKeyOf`. */
  storage_key: string
  linked_at: number
  /** Time when an operator merged the session's visitor with another one. */
  merged_at: number | null
}

/** Replaces the keys of all storages that a visitor had at its last merge. */
export const mergedStorages = 'merged'

/** Returns a function that gives all storages of a merge one name, so that they are never split again. */
function storageNames(sessions: LinkedSession[]): (storageKey: string) => string {
  const mergedAt = Math.max(...sessions.map(({ merged_at }) => merged_at ?? -Infinity))
  const firstSeen = firstSeenByStorage(sessions)
  return (key) => ((firstSeen.get(key) ?? Infinity) <= mergedAt ? mergedStorages : key)
}

/** Returns the time of each storage's first session, by storage key. */
export function firstSeenByStorage(
  sessions: Pick<LinkedSession, 'storage_key' | 'linked_at'>[],
): Map<string, number> {
  const firstSeen = new Map<string, number>()
  for (const { storage_key, linked_at } of sessions)
    firstSeen.set(storage_key, Math.min(linked_at, firstSeen.get(storage_key) ?? linked_at))
  return firstSeen
}

/** Returns true if a client with these keys might split the visitor, so that its sessions must be read. */
export function needsSplitCheck({ storage_key }: KnownVisitor, presented: string[]): boolean {
  return storage_key !== null && !presented.includes(storage_key)
}

/** Returns the ids of the sessions that belong to somebody else, because the client still has an earlier storage. */
export function sessionsToSplit(
  visitor: KnownVisitor,
  presented: string[],
  linked: LinkedSession[],
): string[] {
  const nameOf = storageNames(linked)
  const sessions = linked.map((link) => ({ ...link, storage_key: nameOf(link.storage_key) }))
  const firstSeen = firstSeenByStorage(sessions)
  const names = presented.map(nameOf).filter((name) => firstSeen.has(name))
  const newest = visitor.storage_key
  if (names.length === 0 || newest === null || names.includes(nameOf(newest))) return []
  const since = Math.min(...names.map((name) => firstSeen.get(name) ?? 0))
  const isSomebodyElse = ({ storage_key: name }: LinkedSession) =>
    !names.includes(name) && (firstSeen.get(name) ?? 0) >= since
  return sessions
    .filter(isSomebodyElse)
    .map(({ session_id }) => session_id)
    .sort()
}
