import type { DomainEvent, RecordedEvent } from '../../infra/event-store/event.ts'
import { webhookEventId } from '../../infra/ids.ts'
import { type Column, runAsOneStatement, unnest } from '../../infra/postgres/arrays.ts'
import type { Tx } from '../../infra/postgres/pool.ts'
import { insertRows, type RowOf, saveRows } from '../../infra/postgres/table.ts'
import type { VisitorMerged, VisitorSplit } from '../../schemas/events.ts'
import { requestTexts, saveTexts, visitorRow } from './apply-visitors.ts'
import { readEvent } from './stored-event.ts'
import { type LinkedVisitor, sessionEvents, visitors } from './tables.ts'

/** Event data of a session that moves to another visitor. */
export type SessionReassignment = VisitorSplit | VisitorMerged
type ReassignmentType = 'VisitorSplit' | 'VisitorMerged'
export type ReassignmentEvent = Extract<RecordedEvent, { type: ReassignmentType }>

export const isReassignment = <E extends DomainEvent>(
  event: E,
): event is Extract<E, { type: ReassignmentType }> =>
  event.type === 'VisitorSplit' || event.type === 'VisitorMerged'

/** Returns epoch milliseconds. */
export const reassignedAt = (reassignment: SessionReassignment): number =>
  'merged_at' in reassignment ? reassignment.merged_at : reassignment.split_at

/** Returns the new visitor link of the session's decisions. */
export function reassignedLink(reassignment: SessionReassignment): LinkedVisitor {
  const { visitor_id: id, confidence } = reassignment
  const method = 'merged_at' in reassignment ? 'existing' : 'new'
  return { id, confidence, identified_at: reassignedAt(reassignment), method, basis: null }
}

/** Returns the id of the webhook event that reports the session's new visitor. */
export const reassignedEventId = ({ event_id }: SessionReassignment): string =>
  webhookEventId('session.fingerprint.calculated', event_id)

/** Applies reassignments. All events of a session are in one partition, so its earlier decisions are already stored. */
export async function applyReassignments(tx: Tx, events: ReassignmentEvent[]): Promise<void> {
  const changed = new Map<string, VisitorKey>()
  for (const reassignments of splitIntoRounds(events.map(({ data }) => data))) {
    for (const {
      organization_id,
      environment,
      visitor_id,
      earlier_visitor_id,
    } of await reassignSessions(tx, reassignments))
      for (const id of [visitor_id, earlier_visitor_id])
        changed.set(`${organization_id} ${environment} ${id}`, {
          organization_id,
          environment,
          visitor_id: id,
        })
  }
  for (const visitor of changed.values()) await rebuildVisitor(tx, visitor)
}

// Splits the reassignments so that each round has a session at most once.
function splitIntoRounds(reassignments: SessionReassignment[]): SessionReassignment[][] {
  const rounds: Map<string, SessionReassignment>[] = []
  for (const reassignment of reassignments) {
    const last = rounds.findLastIndex((round) => round.has(reassignment.session_id))
    const round = rounds[last + 1] ?? new Map()
    rounds[last + 1] = round.set(reassignment.session_id, reassignment)
  }
  return rounds.map((round) => [...round.values()])
}

type VisitorKey = Pick<VisitorSplit, 'organization_id' | 'environment' | 'visitor_id'>

const reassignedColumns: Column<SessionReassignment>[] = [
  { name: 'session_id', type: 'text', encode: (reassignment) => reassignment.session_id },
  { name: 'organization_id', type: 'text', encode: (reassignment) => reassignment.organization_id },
  { name: 'environment', type: 'text', encode: (reassignment) => reassignment.environment },
  { name: 'from_id', type: 'text', encode: (reassignment) => reassignment.earlier_visitor_id },
  { name: 'to_id', type: 'text', encode: (reassignment) => reassignment.visitor_id },
  {
    name: 'link',
    type: 'text',
    encode: (reassignment) => JSON.stringify(reassignedLink(reassignment)),
  },
]

// Returns the reassignments whose session belonged to the earlier visitor. The session's row may have expired already.
async function reassignSessions(
  tx: Tx,
  reassignments: SessionReassignment[],
): Promise<SessionReassignment[]> {
  const { names, source, values } = unnest(reassignedColumns, reassignments)
  const { rows } = await tx.query<{ session_id: string; event_id: string | null }>(
    `with reassignments as (select * from ${source} as m (${names})),
     reassigned as (
       update sessions s set visitor_id = to_id, visitor = link from reassignments m
       where s.session_id = m.session_id and s.visitor_id = from_id returning s.session_id, s.event_id
     ),
     decided as (
       update decisions d set visitor_id = to_id from reassignments m
       where d.session_id = m.session_id and d.visitor_id = from_id returning d.session_id
     ),
     unlinked as (
       delete from visitor_sessions v using reassignments m
       where v.organization_id = m.organization_id and v.environment = m.environment
         and v.visitor_id = from_id and v.session_id = m.session_id
       returning v.organization_id, v.environment, to_id, v.session_id
     ),
     linked as (
       insert into visitor_sessions (organization_id, environment, visitor_id, session_id)
       select * from unlinked on conflict do nothing
     )
     select session_id, event_id from reassigned full join unlinked using (session_id)`,
    values,
  )
  const eventIds = new Map(rows.map(({ session_id, event_id }) => [session_id, event_id]))
  await runAsOneStatement(
    tx,
    insertRows(
      sessionEvents,
      reassignments.flatMap((reassignment) =>
        webhookEventsOf(reassignment, eventIds.get(reassignment.session_id)),
      ),
    ),
  )
  return reassignments.filter(({ session_id }) => eventIds.has(session_id))
}

function webhookEventsOf(
  reassignment: SessionReassignment,
  decision_id: string | null | undefined,
): RowOf<typeof sessionEvents>[] {
  if (!decision_id) return []
  const { session_id, organization_id, environment } = reassignment
  const type = 'session.fingerprint.calculated' as const
  const columns = { session_id, organization_id, environment, type, decision_id }
  return [
    {
      ...columns,
      id: reassignedEventId(reassignment),
      created_at: reassignedAt(reassignment),
      visitor: reassignedLink(reassignment),
    },
  ]
}

/**
 * Rebuilds the visitor's row from its decisions. Without decisions, deletes the row, because it may describe sessions
 * that now belong to another visitor.
 */
export async function rebuildVisitor(tx: Tx, visitor: VisitorKey): Promise<void> {
  const { organization_id, environment, visitor_id } = visitor
  const key = [organization_id, environment, visitor_id]
  const { rows } = await tx.query<{
    first: number
    last: number
    sessions: number
    latest: Buffer | null
  }>(
    `select min(observed_at)::float8 as first, max(observed_at)::float8 as last,
       (select count(*)::int from visitor_sessions
         where organization_id = $1 and environment = $2 and visitor_id = $3) as sessions,
       (array_agg(event order by evaluated_at desc, event_id desc))[1] as latest
     from decisions where organization_id = $1 and environment = $2 and visitor_id = $3`,
    key,
  )
  const [summary] = rows
  if (!summary?.latest) {
    await tx.query(
      'delete from visitors where organization_id = $1 and environment = $2 and visitor_id = $3',
      key,
    )
    return
  }
  const data = readEvent(summary.latest)
  const texts = requestTexts(data)
  if (!data.visitor) throw new Error(`decision ${data.event_id} has no visitor`)
  const row = visitorRow({
    ...summary,
    latest: { data, visitor: { ...data.visitor, id: visitor_id }, texts },
  })
  await runAsOneStatement(tx, [
    ...saveRows(visitors, [{ ...row, seen_count: summary.sessions }]),
    ...saveTexts(Object.values(texts)),
  ])
}
