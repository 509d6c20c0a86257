import type { VisitorLink } from '../../../schemas/events.ts'
import type { KnownVisitor } from './match.ts'

export type RecordedVisitor = Pick<VisitorLink, 'id' | 'confidence' | 'identified_at' | 'method' | 'basis'>

/** A session of a visitor, by the continuity key that its client was given. */
export interface LinkedSession {
  session_id: string
  /** Who keeps storage is given the same key each time: sessions with one key are a lineage. */
  lineage: string
  linked_at: number
  /** When somebody said that its visitor and another are one. */
  merged_at: number | null
}

/** What all lineages that were of a visitor at its last merger are called. */
export const mergedStorages = 'merged'

/** Names a lineage of the visitor: those that somebody merged have one name. */
export function storageNames(sessions: LinkedSession[]): (lineage: string) => string {
  const merged = Math.max(...sessions.map(({ merged_at }) => merged_at ?? Number.NEGATIVE_INFINITY))
  const began = beginnings(sessions)
  return (lineage) => ((began.get(lineage) ?? Number.POSITIVE_INFINITY) <= merged ? mergedStorages : lineage)
}

// When each lineage began.
export function beginnings(sessions: Pick<LinkedSession, 'lineage' | 'linked_at'>[]): Map<string, number> {
  const began = new Map<string, number>()
  for (const { lineage, linked_at } of sessions)
    began.set(lineage, Math.min(linked_at, began.get(lineage) ?? linked_at))
  return began
}

/** Whether the links of the visitor have to be looked at, when a client presents these continuity keys. */
export function mayBeTwo({ lineage }: KnownVisitor, presented: string[]): boolean {
  return lineage !== null && !presented.includes(lineage)
}

/**
 * A visitor is a chain of lineages. Each but the first was linked since the one before was taken for lost. What a client
 * presents is not lost: the sessions of who came without it meanwhile are somebody else's.
 */
export function sessionsToSplit(
  visitor: KnownVisitor,
  presented: string[],
  linked: LinkedSession[],
): string[] {
  const nameOf = storageNames(linked)
  const sessions = linked.map((one) => ({ ...one, lineage: nameOf(one.lineage) }))
  const lineages = beginnings(sessions)
  const shown = presented.map(nameOf).filter((name) => lineages.has(name))
  if (shown.length === 0 || visitor.lineage === null || shown.includes(nameOf(visitor.lineage))) return []
  const began = Math.min(...shown.map((name) => lineages.get(name) ?? 0))
  const isOther = ({ lineage }: LinkedSession) =>
    !shown.includes(lineage) && (lineages.get(lineage) ?? 0) >= began
  return sessions
    .filter(isOther)
    .map(({ session_id }) => session_id)
    .sort()
}
