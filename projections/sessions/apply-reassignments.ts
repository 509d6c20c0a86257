import type { DomainEvent, RecordedEvent } from '../../infra/event-store/codec.ts'
import { webhookEventId } from '../../infra/ids.ts'
import { type Column, runTogether, unnest } from '../../infra/postgres/arrays.ts'
import type { Tx } from '../../infra/postgres/pool.ts'
import { insertRows, type RowOf, saveRows } from '../../infra/postgres/table.ts'
import type { VisitorMerged, VisitorSplit } from '../../schemas/events.ts'
import { requestTexts, saveTexts, visitorRow } from './apply-visitors.ts'
import { readEvent } from './stored-event.ts'
import { type LinkedVisitor, sessionEvents, visitors } from './tables.ts'

/** A session was given another visitor. */
export type SessionReassignment = VisitorSplit | VisitorMerged
type ReassignmentType = 'VisitorSplit' | 'VisitorMerged'
export type ReassignmentEvent = Extract<RecordedEvent, { type: ReassignmentType }>

export const isReassignment = <E extends DomainEvent>(
  event: E,
): event is Extract<E, { type: ReassignmentType }> =>
  event.type === 'VisitorSplit' || event.type === 'VisitorMerged'

/** Epoch milliseconds. */
export const reassignedAt = (move: SessionReassignment): number =>
  'merged_at' in move ? move.merged_at : move.split_at

/** What the session's decisions say of its visitor from then on. */
export function reassignedLink(move: SessionReassignment): LinkedVisitor {
  const { visitor_id: id, confidence } = move
  const method = 'merged_at' in move ? 'existing' : 'new'
  return { id, confidence, identified_at: reassignedAt(move), method, basis: null }
}

/** The event that notifies receivers again of who the session's visitor is. */
export const reassignedEventId = ({ event_id }: SessionReassignment): string =>
  webhookEventId('session.fingerprint.calculated', event_id)

// One partition has all of a session's events, so its decisions of before are there.
export async function applyReassignments(tx: Tx, events: ReassignmentEvent[]): Promise<void> {
  const touched = new Map<string, Visitor>()
  for (const moves of inTurns(events.map(({ data }) => data))) {
    for (const { organization_id, environment, visitor_id, earlier_visitor_id } of await reassignSessions(
      tx,
      moves,
    ))
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
function inTurns(moves: SessionReassignment[]): SessionReassignment[][] {
  const turns: Map<string, SessionReassignment>[] = []
  for (const move of moves) {
    const last = turns.findLastIndex((turn) => turn.has(move.session_id))
    const turn = turns[last + 1] ?? new Map()
    turns[last + 1] = turn.set(move.session_id, move)
  }
  return turns.map((turn) => [...turn.values()])
}

type Visitor = Pick<VisitorSplit, 'organization_id' | 'environment' | 'visitor_id'>

const movedColumns: Column<SessionReassignment>[] = [
  { name: 'session_id', type: 'text', of: (move) => move.session_id },
  { name: 'organization_id', type: 'text', of: (move) => move.organization_id },
  { name: 'environment', type: 'text', of: (move) => move.environment },
  { name: 'from_id', type: 'text', of: (move) => move.earlier_visitor_id },
  { name: 'to_id', type: 'text', of: (move) => move.visitor_id },
  { name: 'link', type: 'text', of: (move) => JSON.stringify(reassignedLink(move)) },
]

// Returns those whose session was of the earlier visitor, who may have outlived it.
async function reassignSessions(tx: Tx, moves: SessionReassignment[]): Promise<SessionReassignment[]> {
  const { names, source, values } = unnest(movedColumns, moves)
  const { rows } = await tx.query<{ session_id: string; event_id: string | null }>(
    `with moved as (select * from ${source} as m (${names})),
     shown as (
       update sessions s set visitor_id = to_id, visitor = link from moved m
       where s.session_id = m.session_id and s.visitor_id = from_id returning s.session_id, s.event_id
     ),
     decided as (
       update decisions d set visitor_id = to_id from moved m
       where d.session_id = m.session_id and d.visitor_id = from_id returning d.session_id
     ),
     gone as (
       delete from visitor_sessions v using moved m
       where v.organization_id = m.organization_id and v.environment = m.environment
         and v.visitor_id = from_id and v.session_id = m.session_id
       returning v.organization_id, v.environment, to_id, v.session_id
     ),
     put as (
       insert into visitor_sessions (organization_id, environment, visitor_id, session_id)
       select * from gone on conflict do nothing
     )
     select session_id, event_id from shown full join gone using (session_id)`,
    values,
  )
  const found = new Map(rows.map(({ session_id, event_id }) => [session_id, event_id]))
  await runTogether(
    tx,
    insertRows(
      sessionEvents,
      moves.flatMap((move) => told(move, found.get(move.session_id))),
    ),
  )
  return moves.filter(({ session_id }) => found.has(session_id))
}

function told(
  move: SessionReassignment,
  decision_id: string | null | undefined,
): RowOf<typeof sessionEvents>[] {
  if (!decision_id) return []
  const { session_id, organization_id, environment } = move
  const type = 'session.fingerprint.calculated' as const
  const about = { session_id, organization_id, environment, type, decision_id }
  return [
    { ...about, id: reassignedEventId(move), created_at: reassignedAt(move), visitor: reassignedLink(move) },
  ]
}

interface Gathered {
  first: number
  last: number
  sessions: number
  latest: Buffer | null
}

/**
 * From all of its decisions, as if they had come under it. Where all have ended or were erased, nothing is shown of it
 * until it comes again: what was shown may be another's.
 */
export async function remakeVisitor(tx: Tx, visitor: Visitor): Promise<void> {
  const { organization_id, environment, visitor_id } = visitor
  const whose = [organization_id, environment, visitor_id]
  const { rows } = await tx.query<Gathered>(
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
  const row = visitorRow({ ...found, latest: { data, visitor: { ...data.visitor, id: visitor_id }, texts } })
  await runTogether(tx, [
    ...saveRows(visitors, [{ ...row, seen_count: found.sessions }]),
    ...saveTexts(Object.values(texts)),
  ])
}
