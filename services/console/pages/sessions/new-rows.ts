import type { SessionSummary } from '../../../readback/schemas/sessions.ts'

const decisionOf = ({ id, latest_decision }: SessionSummary) =>
  `${id} ${latest_decision.evaluated_at}`

/**
 * Updates the shown rows in place from the newest response, and counts its other rows. A session with a new decision
 * counts as new, because it belongs at the top.
 */
export function mergeNewest(
  rows: readonly SessionSummary[],
  newest: readonly SessionSummary[],
): { rows: SessionSummary[]; newCount: number } {
  const newestRows = new Map(newest.map((row) => [decisionOf(row), row]))
  const shown = new Set(rows.map(decisionOf))
  return {
    rows: [
      ...new Map(rows.map((row) => [row.id, newestRows.get(decisionOf(row)) ?? row])).values(),
    ],
    newCount: [...newestRows.keys()].filter((key) => !shown.has(key)).length,
  }
}
