import type { DomainEvent, RecordedEvent } from '../../infra/event-store/codec.ts'
import { webhookEventId } from '../../infra/ids.ts'
import { runTogether } from '../../infra/postgres/arrays.ts'
import type { Tx } from '../../infra/postgres/pool.ts'
import { insertRows, saveRows } from '../../infra/postgres/table.ts'
import type { VisitorMerged, VisitorSplit } from '../../schemas/events.ts'
import { requestTexts, saveTexts, visitorRow } from './apply-visitors.ts'
import { readEvent } from './stored-event.ts'
import { type LinkedVisitor, sessionEvents, visitors } from './tables.ts'

/** A session was given another visitor. */
export type SessionMove = VisitorSplit | VisitorMerged
type MoveType = 'VisitorSplit' | 'VisitorMerged'
export type MoveEvent = Extract<RecordedEvent, { type: MoveType }>

export const isMove = <E extends DomainEvent>(event: E): event is Extract<E, { type: MoveType }> =>
  event.type === 'VisitorSplit' || event.type === 'VisitorMerged'

/** Epoch milliseconds. */
export const movedAt = (move: SessionMove): number => ('merged_at' in move ? move.merged_at : move.split_at)

/** What the session's decisions say of its visitor from then on. */
export function movedLink(move: SessionMove): LinkedVisitor {
  const { visitor_id: id, confidence } = move
  const method = 'merged_at' in move ? 'existing' : 'new'
  return { id, confidence, identified_at: movedAt(move), method, basis: null }
}

/** The event that tells receivers again who the session's visitor is. */
export const toldAgain = ({ event_id }: SessionMove): string =>
  webhookEventId('session.fingerprint.calculated', event_id)

// One partition has all of a session's events, so its decisions of before are there.
export async function applyMoves(tx: Tx, events: MoveEvent[]): Promise<void> {
  const touched = new Map<string, Visitor>()
  for (const { data } of events) {
    if (!(await moveSession(tx, data))) continue
    const { organization_id, environment } = data
    for (const visitor_id of [data.visitor_id, data.earlier_visitor_id])
      touched.set(`${organization_id} ${environment} ${visitor_id}`, {
        organization_id,
        environment,
        visitor_id,
      })
  }
  for (const visitor of touched.values()) await remakeVisitor(tx, visitor)
}

type Visitor = Pick<VisitorSplit, 'organization_id' | 'environment' | 'visitor_id'>

// Returns whether the session was of the earlier visitor, who may have outlived it.
async function moveSession(tx: Tx, move: SessionMove): Promise<boolean> {
  const { session_id, organization_id, environment, visitor_id, earlier_visitor_id } = move
  const between = [session_id, visitor_id, earlier_visitor_id]
  const link = movedLink(move)
  const { rows } = await tx.query<{ event_id: string }>(
    `update sessions set visitor_id = $2, visitor = $4 where session_id = $1 and visitor_id = $3
     returning event_id`,
    [...between, JSON.stringify(link)],
  )
  await tx.query('update decisions set visitor_id = $2 where session_id = $1 and visitor_id = $3', between)
  const { rowCount } = await tx.query(
    `with gone as (delete from visitor_sessions where session_id = $1 and visitor_id = $3 returning *)
     insert into visitor_sessions (organization_id, environment, visitor_id, session_id)
     select organization_id, environment, $2, session_id from gone on conflict do nothing`,
    between,
  )
  const type = 'session.fingerprint.calculated' as const
  const told = { id: toldAgain(move), type, created_at: movedAt(move), visitor: link }
  const about = { session_id, organization_id, environment }
  const raised = rows.map(({ event_id: decision_id }) => ({ ...told, ...about, decision_id }))
  if (raised.length > 0) await runTogether(tx, insertRows(sessionEvents, raised))
  return raised.length > 0 || rowCount !== 0
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
