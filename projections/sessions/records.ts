import type { Manipulation } from '../../schemas/events.ts'
import type { DecisionRow } from './rows.ts'

/** A decision as stored: `manipulation` is JSON text. */
export type DecisionRecord = Omit<DecisionRow, 'manipulation'> & { manipulation: string | null }

/** The columns of a decision in the table named `alias`; bigints as numbers. */
export function decisionFields(alias: string): string {
  return `${alias}.event_id, ${alias}.verdict, ${alias}.risk_score, ${alias}.phase, ${alias}.is_provisional,
    ${alias}.manipulation, ${alias}.evaluation_duration_ms, ${alias}.evaluated_at::float8`
}

export function decisionRow(record: DecisionRecord): DecisionRow {
  return {
    event_id: record.event_id,
    verdict: record.verdict,
    risk_score: record.risk_score,
    phase: record.phase,
    is_provisional: record.is_provisional,
    manipulation: parse<Manipulation>(record.manipulation),
    evaluation_duration_ms: record.evaluation_duration_ms,
    evaluated_at: record.evaluated_at,
  }
}

/** JSON text that a handler of ours wrote. */
export function parse<T>(text: string | null): T | null {
  return text === null ? null : JSON.parse(text)
}
