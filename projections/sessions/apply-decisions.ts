import type { RecordedEvent } from '../../infra/event-store/codec.ts'
import type { Tx } from '../../infra/postgres/pool.ts'
import { type Column, unnest } from '../../infra/postgres/unnest.ts'
import type { SessionScored } from '../../schemas/events.ts'
import type { DecisionEvidence, LinkedVisitor } from './rows.ts'

export type ScoredEvent = Extract<RecordedEvent, { type: 'SessionScored' }>

/** The columns that sessions and decisions both have. */
export const decisionColumns: Column<ScoredEvent>[] = [
  { name: 'event_id', type: 'text', of: ({ data }) => data.event_id },
  { name: 'session_id', type: 'text', of: ({ data }) => data.session_id },
  { name: 'organization_id', type: 'text', of: ({ data }) => data.organization_id },
  { name: 'environment', type: 'text', of: ({ data }) => data.environment },
  { name: 'visitor_id', type: 'text', of: ({ data }) => data.visitor?.id ?? null },
  { name: 'evaluated_at', type: 'bigint', of: ({ data }) => data.evaluated_at },
  { name: 'evaluation_duration_ms', type: 'integer', of: ({ data }) => data.evaluation_duration_ms },
  { name: 'verdict', type: 'text', of: ({ data }) => data.verdict },
  { name: 'risk_score', type: 'integer', of: ({ data }) => data.risk_score },
  { name: 'phase', type: 'text', of: ({ data }) => data.phase },
  { name: 'is_provisional', type: 'boolean', of: ({ data }) => data.is_provisional },
  {
    name: 'manipulation',
    type: 'text',
    of: ({ data }) => data.manipulation && JSON.stringify(data.manipulation),
  },
]

const columns: Column<ScoredEvent>[] = [
  ...decisionColumns,
  { name: 'log_offset', type: 'bigint', of: ({ position }) => position.offset },
  { name: 'evidence', type: 'text', of: ({ data }) => JSON.stringify(evidenceOf(data)) },
]

/** Records the decisions and returns those not met before, in their order: the first of an event id wins. */
export async function insertDecisions(tx: Tx, scored: ScoredEvent[]): Promise<ScoredEvent[]> {
  const first = new Map<string, ScoredEvent>()
  for (const event of scored) if (!first.has(event.data.event_id)) first.set(event.data.event_id, event)
  const { names, source, values } = unnest(columns, [...first.values()])
  const { rows } = await tx.query<{ event_id: string }>({
    name: 'insert-decisions',
    text: `insert into decisions (${names}) select * from ${source} on conflict do nothing returning event_id`,
    values,
  })
  const inserted = new Set(rows.map((row) => row.event_id))
  return [...first.values()].filter((event) => inserted.has(event.data.event_id))
}

function evidenceOf(data: SessionScored): DecisionEvidence {
  const { request, score_breakdown, signals_fired, attribution } = data
  return { request, score_breakdown, visitor: linkedVisitor(data), signals_fired, attribution }
}

export function linkedVisitor({ visitor }: SessionScored): LinkedVisitor | null {
  if (!visitor) return null
  const { id, confidence, identified_at, method, basis } = visitor
  return { id, confidence, identified_at, method, basis }
}
