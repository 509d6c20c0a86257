import type { Db } from '../../infra/postgres/pool.ts'
import type { Bind } from './filter-fields.ts'
import { lastingConditions } from './filters.ts'
import type { DataScope } from './scope.ts'
import { inScope } from './search.ts'
import type { SessionSelector } from './selected-sessions.ts'
import { type StoredMark, sessionMarks } from './tables.ts'

/** Returns the ids of the existing sessions that the target selects, at most `limit`. */
export async function sessionsToMark(
  db: Db,
  scope: DataScope,
  { target, limit }: { target: SessionSelector; limit: number },
): Promise<string[]> {
  const values: unknown[] = [scope.organizationId, scope.environment]
  const bind: Bind = (value) => `$${values.push(value)}`
  const conditions = [inScope, ...targetConditions(scope, target, bind)]
  const { rows } = await db.query<{ session_id: string }>(
    `select s.session_id from read.sessions s where ${conditions.join(' and ')}
     order by s.session_id limit ${bind(limit)}`,
    values,
  )
  return rows.map(({ session_id }) => session_id)
}

function targetConditions(scope: DataScope, target: SessionSelector, bind: Bind): string[] {
  if ('sessionIds' in target) return [`s.session_id = any(${bind(target.sessionIds)})`]
  const filters =
    'visitorId' in target
      ? { visitor_id: [target.visitorId] }
      : { client_user_id: [target.clientUserId] }
  return lastingConditions(scope, filters, bind)
}

/** Returns the mark's rows, one per session, including removed ones. */
export async function sessionsWithMark(
  db: Db,
  { organizationId, environment }: DataScope,
  markId: string,
): Promise<StoredMark[]> {
  const { rows } = await db.query<StoredMark>(
    `select ${sessionMarks.select('m')} from read.session_marks m
     where m.mark_id = $1 and m.organization_id = $2 and m.environment = $3 order by m.session_id`,
    [markId, organizationId, environment],
  )
  return rows
}

/** Lists the newest mark of each marked session, ordered by session id. */
export async function newestMarks(
  db: Db,
  { organizationId, environment }: DataScope,
  { after, limit }: { after: string; limit: number },
): Promise<StoredMark[]> {
  const { rows } = await db.query<StoredMark>(
    `select distinct on (m.session_id) ${sessionMarks.select('m')} from read.session_marks m
     where m.organization_id = $1 and m.environment = $2 and not m.is_removed and m.session_id > $3
     order by m.session_id, m.log_offset desc limit $4`,
    [organizationId, environment, after, limit],
  )
  return rows
}

/** Returns the newest mark by session id; null for a session without marks. Omits unknown sessions. */
export async function currentMarks(
  db: Db,
  { organizationId, environment }: DataScope,
  sessionIds: string[],
): Promise<Map<string, SessionMark | null>> {
  const { rows } = await db.query<{ session_id: string; mark: SessionMark | null }>(
    `select s.session_id, ${selectMark('s')} as mark from read.sessions s
     where s.organization_id = $1 and s.environment = $2 and s.session_id = any($3)`,
    [organizationId, environment, sessionIds],
  )
  return new Map(rows.map(({ session_id, mark }) => [session_id, mark]))
}

export interface SessionMark extends Pick<StoredMark, 'label' | 'reason' | 'marked_at'> {
  id: string
}

/** Returns SQL for the `SessionMark` of a row of `sessions`; null without a mark. */
export const selectMark = (session: string): string =>
  `case when ${session}.mark_id is not null then json_build_object('id', ${session}.mark_id, 'label', ${session}.mark,
    'reason', ${session}.mark_reason, 'marked_at', ${session}.marked_at) end`
