import type { VisitorSummary } from '../../../readback/schemas/fingerprints.ts'
import type { SessionSummary } from '../../../readback/schemas/sessions.ts'

/** A row of the list of visitors. */
export interface ListedVisitor {
  /** null for sessions without a visitor. */
  id: string | null
  lastSeen: string
  sessions: number
  latest: VisitorSummary['latest_session']
}

/** Groups sessions, newest first, by visitor. */
export function groupByVisitor(rows: SessionSummary[]): ListedVisitor[] {
  const groups = Map.groupBy(rows, (row) => row.visitor_fingerprint?.id ?? null)
  return [...groups].flatMap(([id, [newest, ...others]]) =>
    newest
      ? {
          id,
          lastSeen: newest.latest_decision.evaluated_at,
          sessions: 1 + others.length,
          latest: {
            id: newest.id,
            verdict: newest.latest_decision.verdict,
            risk_score: newest.latest_decision.risk_score,
            client_user_id: newest.client_user_id,
            country: newest.facts?.country ?? null,
            browser: newest.facts?.browser ?? null,
            os: newest.facts?.os ?? null,
          },
        }
      : [],
  )
}

/** Names the browser and its system: `Chrome on Windows`. */
export const browserText = ({ browser, os }: { browser: string | null; os: string | null }) =>
  [browser, os].filter(Boolean).join(' on ')
