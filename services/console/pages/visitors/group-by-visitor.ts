import type { SessionSummary } from '../../../readback/schemas/sessions.ts'

interface UserVisitor {
  /** null for sessions without a visitor. */
  id: string | null
  sessions: number
  lastSeen: string
}

/** Groups sessions, newest first, by visitor. */
export function groupByVisitor(rows: SessionSummary[]): UserVisitor[] {
  const visitors = new Map<string | null, UserVisitor>()
  for (const { visitor_fingerprint: visitor, latest_decision: decision } of rows) {
    const id = visitor?.id ?? null
    const { sessions, lastSeen } = visitors.get(id) ?? {
      sessions: 0,
      lastSeen: decision.evaluated_at,
    }
    visitors.set(id, { id, sessions: sessions + 1, lastSeen })
  }
  return [...visitors.values()]
}
