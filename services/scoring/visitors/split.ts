import type { VisitorLink } from '../../../schemas/events.ts'
import type { KnownVisitor } from './match.ts'

type RecordedVisitor = Pick<VisitorLink, 'id' | 'confidence' | 'identified_at' | 'method' | 'basis'>

export interface MadeDecision {
  decisionId: string
  sessionId: string
}

/** Facts on the log about decisions that may have been appended before a crash, without the states that go with them. */
export interface Recorded {
  /** Ids of those decisions that were. */
  decisionIds: ReadonlySet<string>
  /** Ids of sessions with a final decision. */
  final: ReadonlySet<string>
  /** By session id. */
  visitors: ReadonlyMap<string, RecordedVisitor>
}

/** A session of a visitor. Times are epoch milliseconds. */
export interface LinkedSession {
  session_id: string
  /** See `storageKeyOf`: sessions of one client storage have the same. */
  storage_key: string
  linked_at: number
  /** When somebody said that its visitor and another are one. */
  merged_at: number | null
}

/** Stands for all storages that a visitor had at its last merger. */
export const mergedStorages = 'merged'

/** Names a storage of the visitor, so that those that somebody merged have one name. */
function storageNames(sessions: LinkedSession[]): (storageKey: string) => string {
  const merged = Math.max(...sessions.map(({ merged_at }) => merged_at ?? Number.NEGATIVE_INFINITY))
  const began = beginnings(sessions)
  return (key) => ((began.get(key) ?? Number.POSITIVE_INFINITY) <= merged ? mergedStorages : key)
}

/** When each storage was seen first, by its key. */
export function beginnings(
  sessions: Pick<LinkedSession, 'storage_key' | 'linked_at'>[],
): Map<string, number> {
  const began = new Map<string, number>()
  for (const { storage_key, linked_at } of sessions)
    began.set(storage_key, Math.min(linked_at, began.get(storage_key) ?? linked_at))
  return began
}

/** Whether the visitor's sessions have to be read, when a client presents these keys. */
export function mayBeTwo({ storage_key }: KnownVisitor, presented: string[]): boolean {
  return storage_key !== null && !presented.includes(storage_key)
}

/**
 * Ids of the sessions that are another visitor's. A visitor is a chain of storages, each of which was linked because the
 * one before was taken for lost. Where a client presents one, it was not lost, so the sessions that came without it
 * meanwhile are somebody else's.
 */
export function sessionsToSplit(
  visitor: KnownVisitor,
  presented: string[],
  linked: LinkedSession[],
): string[] {
  const nameOf = storageNames(linked)
  const sessions = linked.map((one) => ({ ...one, storage_key: nameOf(one.storage_key) }))
  const storages = beginnings(sessions)
  const present = presented.map(nameOf).filter((name) => storages.has(name))
  const newest = visitor.storage_key
  if (present.length === 0 || newest === null || present.includes(nameOf(newest))) return []
  const began = Math.min(...present.map((name) => storages.get(name) ?? 0))
  const isOther = ({ storage_key: name }: LinkedSession) =>
    !present.includes(name) && (storages.get(name) ?? 0) >= began
  return sessions
    .filter(isOther)
    .map(({ session_id }) => session_id)
    .sort()
}
