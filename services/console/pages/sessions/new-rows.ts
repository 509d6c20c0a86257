import type { SessionSummary } from '../../../readback/schemas/sessions.ts'

const decisionOf = ({ id, latest_decision }: SessionSummary) =>
  `${id} ${latest_decision.evaluated_at}`

/**
 * The rows where they stand, as the newest answer has them, and how many of that are not among them. A session that was
 * decided anew is such a one: its place is at the top.
 */
export function withNewest(
  rows: readonly SessionSummary[],
  newest: readonly SessionSummary[],
): { rows: SessionSummary[]; added: number } {
  const answered = new Map(newest.map((row) => [decisionOf(row), row]))
  const known = new Set(rows.map(decisionOf))
  return {
    rows: [...new Map(rows.map((row) => [row.id, answered.get(decisionOf(row)) ?? row])).values()],
    added: [...answered.keys()].filter((one) => !known.has(one)).length,
  }
}
