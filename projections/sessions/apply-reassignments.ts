import type { DomainEvent, RecordedEvent } from '../../infra/event-store/event.ts'
import { webhookEventId } from '../../infra/ids.ts'
import { type Column, runTogether, unnest } from '../../infra/postgres/arrays.ts'
import type { Tx } from '../../infra/postgres/pool.ts'
import { insertRows, type RowOf, saveRows } from '../../infra/postgres/table.ts'
import type { VisitorMerged, VisitorSplit } from '../../schemas/events.ts'
import { requestTexts, saveTexts, visitorRow } from './apply-visitors.ts'
import { readEvent } from './stored-event.ts'
import { type LinkedVisitor, sessionEvents, visitors } from './tables.ts'

/** A session is another visitor's from now on. */
export type SessionReassignment = VisitorSplit | VisitorMerged
type ReassignmentType = 'VisitorSplit' | 'VisitorMerged'
export type ReassignmentEvent = Extract<RecordedEvent, { type: ReassignmentType }>

export const isReassignment = <E extends DomainEvent>(
  event: E,
): event is Extract<E, { type: ReassignmentType }> =>
  event.type === 'VisitorSplit' || event.type === 'VisitorMerged'

/** Epoch milliseconds. */
export const reassignedAt = (reassignment: SessionReassignment): number =>
  'merged_at' in reassignment ? reassignment.merged_at : reassignment.split_at

/** The visitor of the session's decisions from then on. */
export function reassignedLink(reassignment: SessionReassignment): LinkedVisitor {
  const { visitor_id: id, confidence } = reassignment
  const method = 'merged_at' in reassignment ? 'existing' : 'new'
  return { id, confidence, identified_at: reassignedAt(reassignment), method, basis: null }
}

/** The event that notifies receivers again of who the session's visitor is. */
export const reassignedEventId = ({ event_id }: SessionReassignment): string =>
  webhookEventId('session.fingerprint.calculated', event_id)

/** One partition has all of a session's events, so its earlier decisions are stored already. */
export async function applyReassignments(tx: Tx, events: ReassignmentEvent[]): Promise<void> {
  const touched = new Map<string, Visitor>()
  for (const reassignments of inTurns(events.map(({ data }) => data))) {
    for (const {
      organization_id,
      environment,
      visitor_id,
      earlier_visitor_id,
    } of await reassignSessions(tx, reassignments))
      for (const id of [visitor_id, earlier_visitor_id])
        touched.set(`${organization_id} ${environment} ${id}`, {
          organization_id,
          environment,
          visitor_id: id,
        })
  }
  for (const visitor of touched.values()) await remakeVisitor(tx, visitor)
}

// No session is in a turn twice.
function inTurns(reassignments: SessionReassignment[]): SessionReassignment[][] {
  const turns: Map<string, SessionReassignment>[] = []
  for (const reassignment of reassignments) {
    const last = turns.findLastIndex((turn) => turn.has(reassignment.session_id))
    const turn = turns[last + 1] ?? new Map()
    turns[last + 1] = turn.set(reassignment.session_id, reassignment)
  }
  return turns.map((turn) => [...turn.values()])
}

type Visitor = Pick<VisitorSplit, 'organization_id' | 'environment' | 'visitor_id'>

const reassignedColumns: Column<SessionReassignment>[] = [
  { name: 'session_id', type: 'text', of: (reassignment) => reassignment.session_id },
  { name: 'organization_id', type: 'text', of: (reassignment) => reassignment.organization_id },
  { name: 'environment', type: 'text', of: (reassignment) => reassignment.environment },
  { name: 'from_id', type: 'text', of: (reassignment) => reassignment.earlier_visitor_id },
  { name: 'to_id', type: 'text', of: (reassignment) => reassignment.visitor_id },
  {
    name: 'link',
    type: 'text',
    of: (reassignment) => JSON.stringify(reassignedLink(reassignment)),
  },
]

// Returns the reassignments whose session was of the earlier visitor, who may have outlived it.
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
     gone as (
       delete from visitor_sessions v using reassignments m
       where v.organization_id = m.organization_id and v.environment = m.environment
         and v.visitor_id = from_id and v.session_id = m.session_id
       returning v.organization_id, v.environment, to_id, v.session_id
     ),
     put as (
       insert into visitor_sessions (organization_id, environment, visitor_id, session_id)
       select * from gone on conflict do nothing
     )
     select session_id, event_id from reassigned full join gone using (session_id)`,
    values,
  )
  const found = new Map(rows.map(({ session_id, event_id }) => [session_id, event_id]))
  await runTogether(
    tx,
    insertRows(
      sessionEvents,
      reassignments.flatMap((reassignment) =>
        eventsOf(reassignment, found.get(reassignment.session_id)),
      ),
    ),
  )
  return reassignments.filter(({ session_id }) => found.has(session_id))
}

function eventsOf(
  reassignment: SessionReassignment,
  decision_id: string | null | undefined,
): RowOf<typeof sessionEvents>[] {
  if (!decision_id) return []
  const { session_id, organization_id, environment } = reassignment
  const type = 'session.fingerprint.calculated' as const
  const about = { session_id, organization_id, environment, type, decision_id }
  return [
    {
      ...about,
      id: reassignedEventId(reassignment),
      created_at: reassignedAt(reassignment),
      visitor: reassignedLink(reassignment),
    },
  ]
}

/**
 * Makes the visitor's row from all of its decisions, as if they had been about it from the first. Where all have ended or
 * were erased there is no row until it comes again, because the one before may be of another's sessions.
 */
export async function remakeVisitor(tx: Tx, visitor: Visitor): Promise<void> {
  const { organization_id, environment, visitor_id } = visitor
  const whose = [organization_id, environment, visitor_id]
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
    whose,
  )
  const [found] = rows
  if (!found?.latest) {
    await tx.query(
      'delete from visitors where organization_id = $1 and environment = $2 and visitor_id = $3',
      whose,
    )
    return
  }
  const data = readEvent(found.latest)
  const texts = requestTexts(data)
  if (!data.visitor) throw new Error(`the decision ${data.event_id} has no visitor`)
  const row = visitorRow({
    ...found,
    latest: { data, visitor: { ...data.visitor, id: visitor_id }, texts },
  })
  await runTogether(tx, [
    ...saveRows(visitors, [{ ...row, seen_count: found.sessions }]),
    ...saveTexts(Object.values(texts)),
  ])
}
