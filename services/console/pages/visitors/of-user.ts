import type { ListedSessionRow } from '../shared/types.ts'

interface UserVisitor {
  /** null for sessions that were linked to nobody. */
  id: string | null
  sessions: number
  seenLast: string
}

/** The visitors of sessions, which are listed newest first. */
export function visitorsIn(rows: ListedSessionRow[]): UserVisitor[] {
  const byVisitor = Map.groupBy(rows, ({ visitor_fingerprint: visitor }) => visitor?.id ?? null)
  return [...byVisitor].map(([id, sessions]) => ({
    id,
    sessions: sessions.length,
    seenLast: sessions[0]?.latest_decision.evaluated_at ?? '',
  }))
}
