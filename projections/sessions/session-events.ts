import { isId, webhookEventId } from '../../infra/ids.ts'
import type { Db } from '../../infra/postgres/pool.ts'
import { directEventType } from '../../infra/wire/webhooks/direct-call.ts'
import type { DataScope } from './scope.ts'
import { readEvidence } from './stored-event.ts'
import {
  type DecisionEvidence,
  type DecisionRow,
  decisionFields,
  decisions,
  type SessionEventType,
  sessionEvents,
  sessionEventTypes,
} from './tables.ts'

export interface SessionEventRow
  extends DecisionRow,
    Pick<
      DecisionEvidence,
      | 'request'
      | 'score_breakdown'
      | 'visitor'
      | 'signals_fired'
      | 'attribution'
      | 'agent'
      | 'platform'
    > {
  id: string
  type: SessionEventType
  at: number
  session_id: string
  session_created_at: number
}

export interface ListSessionEvents {
  /** Earliest time of the event, in epoch milliseconds. */
  since: number
  limit: number
  types: readonly SessionEventType[]
}

export async function listSessionEvents(
  db: Db,
  { organizationId, environment }: DataScope,
  { since, limit, types }: ListSessionEvents,
): Promise<SessionEventRow[]> {
  const { rows } = await db.query<StoredSessionEvent>(
    // An index returns the newest events of each type in order; only these are sorted.
    `select ${sessionEventFields} from unnest($5::text[]) as requested(type) cross join lateral (
       select * from read.session_events where organization_id = $1 and environment = $2 and type = requested.type
         and created_at >= $3 order by created_at desc, event_id desc limit $4
     ) e ${eventJoins} order by e.created_at desc, e.event_id desc limit $4`,
    [organizationId, environment, since, limit, types],
  )
  return rows.map(sessionEventRow)
}

/** Returns undefined if the scope has no such event, or the event is older than `since` (epoch milliseconds). */
export async function findSessionEvent(
  db: Db,
  { organizationId, environment }: DataScope,
  { eventId, since }: { eventId: string; since: number },
): Promise<SessionEventRow | undefined> {
  const { rows } = await db.query<StoredSessionEvent>(
    `select ${sessionEventFields} from read.session_events e ${eventJoins}
     where e.event_id = $1 and e.organization_id = $2 and e.environment = $3 and e.created_at >= $4`,
    [eventId, organizationId, environment, since],
  )
  return rows[0] && sessionEventRow(rows[0])
}

/** Returns the events with these ids, in any scope. */
export async function findSessionEvents(db: Db, ids: string[]): Promise<SessionEventRow[]> {
  const { rows } = await db.query<StoredSessionEvent>(
    `select ${sessionEventFields} from read.session_events e ${eventJoins} where e.event_id = any($1)`,
    [ids],
  )
  return rows.map(sessionEventRow)
}

/** Returns the ids of the webhook events about a session, of which some may not have been raised, or about a signup. */
export async function findSessionEventIds(db: Db, sessionId: string): Promise<string[]> {
  const { rows } = await db.query<{ id: string }>(
    'select event_id as id from read.session_events where session_id = $1',
    [sessionId],
  )
  const types = isId('gate', sessionId) ? [directEventType] : sessionEventTypes
  const ids = types.map((type): string => webhookEventId(type, sessionId))
  // The ids of other events, which report a corrected visitor, are derived from the correction.
  return [...ids, ...rows.map(({ id }) => id)]
}

type StoredSessionEvent = DecisionRow &
  Pick<SessionEventRow, 'id' | 'type' | 'at' | 'session_id' | 'session_created_at' | 'visitor'> & {
    event: Buffer
  }

const sessionEventFields = `${sessionEvents.select('e', 'id', 'type', 'visitor')}, e.created_at::float8 as at,
  s.created_at::float8 as session_created_at, ${decisions.select('d', ...decisionFields, 'session_id', 'event')}`
const eventJoins = `join read.decisions d on d.event_id = e.decision_id
  join read.sessions s on s.session_id = d.session_id`

function sessionEventRow({ event, ...row }: StoredSessionEvent): SessionEventRow {
  const { visitor, hand_off: _, ...evidence } = readEvidence(event)
  return { ...row, ...evidence, visitor: row.visitor ?? visitor }
}

/** Returns the ids of the events that an earlier decision than the given one raised. */
export async function findEventsOfEarlierDecisions(
  db: Db,
  events: { id: string; decisionId: string }[],
): Promise<Set<string>> {
  const { rows } = await db.query<{ event_id: string }>({
    name: 'events-of-earlier-decisions',
    text: `select e.event_id from read.session_events e
      join unnest($1::text[], $2::text[]) as given (event_id, decision_id) using (event_id)
      where e.decision_id <> given.decision_id`,
    values: [events.map(({ id }) => id), events.map(({ decisionId }) => decisionId)],
  })
  return new Set(rows.map((row) => row.event_id))
}
