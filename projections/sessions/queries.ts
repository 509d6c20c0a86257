import type { Db } from '../../infra/postgres/pool.ts'
import { containsPattern } from '../../infra/postgres/text.ts'
import type { Verdict } from '../../schemas/events.ts'
import { readDetail } from './detail.ts'
import { type DecisionRecord, decisionFields, decisionRow, parse } from './records.ts'
import type {
  DecisionEvidence,
  FullDecisionRow,
  LinkedVisitor,
  Scope,
  SessionDetailRow,
  SessionRow,
} from './rows.ts'
import { maxShownDecisions, sessionSearch } from './tables.ts'

interface SessionRecord extends DecisionRecord {
  session_id: string
  created_at: number
  client_user_id: string | null
  visitor: string | null
}

const sessionFields = `s.session_id, s.created_at::float8, s.client_user_id, s.visitor, ${decisionFields('s')}`

function sessionRow(record: SessionRecord): SessionRow {
  return {
    id: record.session_id,
    created_at: record.created_at,
    client_user_id: record.client_user_id,
    latest_decision: decisionRow(record),
    visitor: parse<LinkedVisitor>(record.visitor),
  }
}

const summary = (alias: string) =>
  `json_build_object('event_id', ${alias}.event_id, 'verdict', ${alias}.verdict, 'risk_score', ${alias}.risk_score,
    'phase', ${alias}.phase, 'is_provisional', ${alias}.is_provisional, 'evaluated_at', ${alias}.evaluated_at)`

/** All that the session's detail shows; undefined when the session is not in the scope. One round trip. */
export async function findSession(
  db: Db,
  scope: Scope,
  sessionId: string,
): Promise<SessionDetailRow | undefined> {
  const { rows } = await db.query<{ facts: string; detail: string }>({
    name: 'find-session',
    // Two columns: each costs the reader more than making it one costs Postgres.
    text: `select s.detail, json_build_object('id', s.session_id, 'created_at', s.created_at,
        'client_user_id', s.client_user_id, 'decision', ${summary('s')}, 'visitor', s.visitor::json,
        'lifecycle', case when v.visitor_id is not null then json_build_object('first_seen_at', v.first_seen_at,
          'last_seen_at', v.last_seen_at, 'seen_count', v.seen_count) end,
        'previous_decisions', (select coalesce(json_agg(${summary('d')} order by d.log_offset desc), '[]') from (
          select * from read.decisions
          where session_id = s.session_id and event_id <> s.event_id
          order by log_offset desc limit ${maxShownDecisions}
        ) d))::text as facts
      from read.sessions s
      left join read.visitors v on v.organization_id = s.organization_id and v.environment = s.environment
        and v.visitor_id = s.visitor_id
      where s.session_id = $1 and s.organization_id = $2 and s.environment = $3`,
    values: [sessionId.toLowerCase(), scope.organizationId, scope.environment],
  })
  const [record] = rows
  return record && { ...JSON.parse(record.facts), detail: readDetail(record.detail) }
}

export interface ListSessions {
  /** Rows at most. */
  limit: number
  /** The last row of the page before. */
  after?: { evaluatedAt: number; id: string } | undefined
  verdict?: Verdict | undefined
  search?: string | undefined
}

export interface Page<Row> {
  rows: Row[]
  hasMore: boolean
}

/** Sessions by latest decision, newest first. */
export async function listSessions(
  db: Db,
  scope: Scope,
  { limit, after, verdict, search }: ListSessions,
): Promise<Page<SessionRow>> {
  const values: unknown[] = [scope.organizationId, scope.environment, limit + 1]
  const bind = (value: unknown) => `$${values.push(value)}`
  const where = ['s.organization_id = $1', 's.environment = $2']
  if (after) where.push(`(s.evaluated_at, s.session_id) < (${bind(after.evaluatedAt)}, ${bind(after.id)})`)
  if (verdict) where.push(`s.verdict = ${bind(verdict)}`)
  if (search) where.push(searchCondition(search, bind))
  const { rows } = await db.query<SessionRecord>(
    `select ${sessionFields} from read.sessions s where ${where.join(' and ')}
     order by s.evaluated_at desc, s.session_id desc limit $3`,
    values,
  )
  return { rows: rows.slice(0, limit).map(sessionRow), hasMore: rows.length > limit }
}

/** service.md 4.2 rule 2: ids match whole, in any case; anything else is a substring of what a session shows. */
function searchCondition(search: string, bind: (value: unknown) => string): string {
  const id = search.toLowerCase()
  const byEvent = (param: string) =>
    `s.session_id = (select d.session_id from read.decisions d where d.event_id = ${param})`
  // A NUL matches nothing, and Postgres takes none.
  if (search.includes('\0')) return 'false'
  if (id.startsWith('sid_')) return `s.session_id = ${bind(id)}`
  if (id.startsWith('evt_')) return byEvent(bind(id))
  if (id.startsWith('vid_')) return `s.visitor_id = ${bind(id)}`
  if (/^[0-9a-f]{32}$/.test(id)) {
    const param = bind(id)
    return `(s.session_id = ${param} or ${byEvent(param)})`
  }
  return `${sessionSearch.replaceAll('search_', 's.search_')} like ${bind(containsPattern(search))}`
}

/** The decisions that exist among the ids, with all that a hand-off needs; in any order. */
export async function findDecisions(db: Db, decisionIds: string[]): Promise<FullDecisionRow[]> {
  const { rows } = await db.query<
    DecisionRecord &
      Pick<FullDecisionRow, 'session_id' | 'organization_id' | 'environment'> & { evidence: string }
  >({
    name: 'find-decisions',
    text: `select ${decisionFields('d')}, d.session_id, d.organization_id, d.environment, d.evidence
      from read.decisions d where d.event_id = any($1)`,
    values: [decisionIds],
  })
  return rows.map((record) => {
    const { session_id, organization_id, environment } = record
    const evidence: DecisionEvidence = JSON.parse(record.evidence)
    return { ...decisionRow(record), session_id, organization_id, environment, ...evidence }
  })
}
