import type { Db } from '../../infra/postgres/pool.ts'
import type { SessionScored } from '../../schemas/events.ts'
import { userTextId } from './apply-visitors.ts'
import type { DataScope } from './scope.ts'
import { readEvent } from './stored-event.ts'
import { type StoredMark, sessionMarks } from './tables.ts'

/** Selects all sessions of a visitor or of a customer's user, or sessions by id. */
export type SessionSelector =
  | { visitorId: string }
  | { clientUserId: string }
  | { sessionIds: string[] }

export interface SessionVisitor {
  session_id: string
  /** null if no visitor was identified. */
  visitor_id: string | null
}

/** Returns the selected sessions. Those of a user include sessions that were only temporarily attached to the user. */
export async function findSelectedSessions(
  db: Db,
  scope: DataScope,
  selector: SessionSelector,
): Promise<SessionVisitor[]> {
  const { rows } = await db.query<SessionVisitor>(selectionQuery(scope, selector))
  return rows
}

function selectionQuery(scope: DataScope, selector: SessionSelector) {
  if ('visitorId' in selector) return visitorSessionsQuery(scope, selector.visitorId)
  if ('clientUserId' in selector) return userSessionsQuery(scope, selector.clientUserId)
  return {
    text: `select session_id, visitor_id from read.sessions
      where organization_id = $1 and environment = $2 and session_id = any($3) order by session_id`,
    values: [scope.organizationId, scope.environment, selector.sessionIds],
  }
}

/** Returns the visitor of each session; null for deleted sessions. */
export async function findSessionVisitors(db: Db, sessionIds: string[]): Promise<SessionVisitor[]> {
  if (sessionIds.length === 0) return []
  const { rows } = await db.query<SessionVisitor>(
    `select named.session_id, s.visitor_id from unnest($1::text[]) as named (session_id)
     left join read.sessions s on s.session_id = named.session_id`,
    [sessionIds],
  )
  return rows
}

const visitorSessionsQuery = ({ organizationId, environment }: DataScope, visitorId: string) => ({
  // Retention may have deleted sessions before their visitor.
  text: `select session_id, visitor_id from read.visitor_sessions
    where organization_id = $1 and environment = $2 and visitor_id = $3
    union select session_id, visitor_id from read.sessions
    where organization_id = $1 and environment = $2 and visitor_id = $3 order by session_id`,
  values: [organizationId, environment, visitorId],
})

// The id of the search text depends on the scope, but ignores case and Unicode normalization.
const userSessionsQuery = (scope: DataScope, clientUserId: string) => ({
  text: `select distinct c.session_id, s.visitor_id from read.client_user_changes c
    left join read.sessions s on s.session_id = c.session_id
    where c.user_text = $1 and c.client_user_id = $2 order by c.session_id`,
  values: [userTextId(scope, clientUserId), clientUserId],
})

/** Returns those of the visitors that also have other sessions. */
export async function visitorsWithOtherSessions(
  db: Db,
  { organizationId, environment }: DataScope,
  { visitorIds, sessionIds }: { visitorIds: string[]; sessionIds: string[] },
): Promise<Set<string>> {
  const { rows } = await db.query<{ visitor_id: string }>(
    `select visitor_id from unnest($3::text[]) as named (visitor_id)
     where exists (select from read.sessions s where s.organization_id = $1 and s.environment = $2
       and s.visitor_id = named.visitor_id and s.session_id <> all($4))`,
    [organizationId, environment, visitorIds, sessionIds],
  )
  return new Set(rows.map(({ visitor_id }) => visitor_id))
}

/** Returns the number of the sessions' rows by table. */
export async function countRowsOf(db: Db, sessionIds: string[]): Promise<Record<string, number>> {
  const { rows } = await db.query<Record<string, number>>(
    `select (select count(*) from read.decisions where session_id = any($1))::float8 as decisions,
      (select count(*) from read.client_user_changes where session_id = any($1))::float8 as client_user_changes,
      (select count(*) from read.session_marks where session_id = any($1))::float8 as session_marks`,
    [sessionIds],
  )
  return { ...rows[0] }
}

/** Returns all decisions by session id, oldest first. */
export async function findAllDecisions(
  db: Db,
  sessionIds: string[],
): Promise<Map<string, SessionScored[]>> {
  const { rows } = await db.query<{ session_id: string; event: Buffer }>(
    'select session_id, event from read.decisions where session_id = any($1) order by session_id, log_offset',
    [sessionIds],
  )
  return bySession(rows.map(({ session_id, event }) => [session_id, readEvent(event)]))
}

interface UserChange {
  session_id: string
  event_id: string
  /** null = cleared. */
  client_user_id: string | null
}

/** Returns the changes of the client user by session id, oldest first. */
export async function findUserChanges(
  db: Db,
  sessionIds: string[],
): Promise<Map<string, UserChange[]>> {
  const { rows } = await db.query<UserChange>(
    `select session_id, event_id, client_user_id from read.client_user_changes where session_id = any($1)
     order by session_id, log_offset`,
    [sessionIds],
  )
  return bySession(rows.map((row) => [row.session_id, row]))
}

/** Returns all marks by session id, oldest first, including removed ones. */
export async function findMarksOf(
  db: Db,
  sessionIds: string[],
): Promise<Map<string, StoredMark[]>> {
  const { rows } = await db.query<StoredMark>(
    `select ${sessionMarks.select('m')} from read.session_marks m where m.session_id = any($1)
     order by m.session_id, m.log_offset`,
    [sessionIds],
  )
  return bySession(rows.map((row) => [row.session_id, row]))
}

function bySession<T>(entries: [string, T][]): Map<string, T[]> {
  const grouped = Map.groupBy(entries, ([sessionId]) => sessionId)
  return new Map([...grouped].map(([id, group]) => [id, group.map(([, item]) => item)]))
}
