import type { SessionSummary } from '../../../readback/schemas/sessions.ts'

interface UserVisitor {
  /** null for sessions that were linked to nobody. */
  id: string | null
  sessions: number
  seenLast: string
}

/** The visitors of sessions, which are listed newest first. */
export function visitorsIn(rows: SessionSummary[]): UserVisitor[] {
  const visitors = new Map<string | null, UserVisitor>()
  for (const { visitor_fingerprint: visitor, latest_decision: decision } of rows) {
    const id = visitor?.id ?? null
    const { sessions, seenLast } = visitors.get(id) ?? {
      sessions: 0,
      seenLast: decision.evaluated_at,
    }
    visitors.set(id, { id, sessions: sessions + 1, seenLast })
  }
  return [...visitors.values()]
}
