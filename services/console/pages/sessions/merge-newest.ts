import type { SessionSummary } from '../../../readback/schemas/sessions.ts'

const decisionKey = ({ id, latest_decision }: SessionSummary) =>
  `${id} ${latest_decision.evaluated_at}`

/**
 * Updates the rows on screen without moving them, and counts the new ones. A session with a new decision counts as new,
 * because it belongs at the top.
 */
export function mergeNewest(
  rows: readonly SessionSummary[],
  newest: readonly SessionSummary[],
): { rows: SessionSummary[]; newCount: number } {
  const newestRows = new Map(newest.map((row) => [decisionKey(row), row]))
  const shown = new Set(rows.map(decisionKey))
  return {
    rows: [
      ...new Map(rows.map((row) => [row.id, newestRows.get(decisionKey(row)) ?? row])).values(),
    ],
    newCount: [...newestRows.keys()].filter((key) => !shown.has(key)).length,
  }
}
