import type pg from 'pg'
import type { Db } from '../../infra/postgres/pool.ts'
import { containsPattern, isUnsearchable, type RowOf } from '../../infra/postgres/table.ts'
import type { SessionScored } from '../../schemas/events.ts'
import { type SessionMark, selectMark } from './marks.ts'
import type { DataScope, Page } from './scope.ts'
import { keySelects } from './search.ts'
import { readEvent, readEvidence } from './stored-event.ts'
import {
  type DecisionEvidence,
  type DecisionRow,
  type DecisionSummary,
  decisionFields,
  decisions,
  type FullDecisionRow,
  type LinkedVisitor,
  maxEarlierDecisions,
  type sessions,
  visitors,
} from './tables.ts'

interface VisitorLifecycle {
  first_seen_at: number
  last_seen_at: number
  seen_count: number
}

export interface SessionDetailRow {
  id: string
  created_at: number
  client_user_id: string | null
  mark: SessionMark | null
  decision: DecisionSummary
  /** Position of the latest decision on the log. */
  logPosition: { partition: number; offset: number }
  previous_decisions: DecisionSummary[]
  visitor: LinkedVisitor | null
  /** Current values, not as of the decision; null without a visitor. */
  lifecycle: VisitorLifecycle | null
  /** Event of the latest decision. */
  detail: SessionScored
}

const summarySql = (alias: string) =>
  `json_build_object('event_id', ${alias}.event_id, 'verdict', ${alias}.verdict, 'risk_score', ${alias}.risk_score,
    'phase', ${alias}.phase, 'is_provisional', ${alias}.is_provisional, 'evaluated_at', ${alias}.evaluated_at)`

export async function findSession(
  db: Db,
  scope: DataScope,
  sessionId: string,
): Promise<SessionDetailRow | undefined> {
  const { rows } = await db.query<{ facts: string; event: Buffer }>({
    name: 'find-session',
    // Two columns, because parsing many in Node costs more than building JSON in Postgres. The materialized lookup by
    // key keeps Postgres from reading the whole scope in tables without statistics.
    text: `with s as materialized (select * from read.sessions where session_id = $1)
      select latest.event, json_build_object('id', s.session_id, 'created_at', s.created_at,
        'client_user_id', s.client_user_id, 'mark', ${selectMark('s')}, 'decision', ${summarySql('s')},
        'logPosition', json_build_object('partition', latest.log_partition, 'offset', latest.log_offset), 'visitor', s.visitor::json,
        'lifecycle', case when v.visitor_id is not null then json_build_object('first_seen_at', v.first_seen_at,
          'last_seen_at', v.last_seen_at, 'seen_count', v.seen_count) end,
        'previous_decisions', (select coalesce(json_agg(${summarySql('d')} order by d.log_offset desc), '[]') from (
          select * from read.decisions
          where session_id = s.session_id and event_id <> s.event_id
          order by log_offset desc limit ${maxEarlierDecisions}
        ) d))::text as facts
      from s join read.decisions latest on latest.event_id = s.event_id
      left join lateral (
        select * from read.visitors where organization_id = s.organization_id and environment = s.environment
          and visitor_id = s.visitor_id limit 1
      ) v on true
      where s.organization_id = $2 and s.environment = $3`,
    values: [sessionId.toLowerCase(), scope.organizationId, scope.environment],
  })
  const [record] = rows
  return record && { ...JSON.parse(record.facts), detail: readEvent(record.event) }
}

export const findDecisions = (db: Db, decisionIds: string[]): Promise<FullDecisionRow[]> =>
  readDecisions(db, {
    name: 'find-decisions',
    text: `select ${decisionSelect} from read.decisions d where d.event_id = any($1)`,
    values: [decisionIds],
  })

/** Returns the newest decision of each session. */
export const findLatestDecisions = (db: Db, sessionIds: string[]): Promise<FullDecisionRow[]> =>
  readDecisions(db, {
    name: 'find-latest-decisions',
    text: `select latest.* from unnest($1::text[]) as session (id) cross join lateral (
        select ${decisionSelect} from read.decisions d where d.session_id = session.id
        order by d.log_offset desc limit 1
      ) latest`,
    values: [sessionIds],
  })

const decisionSelect = decisions.select(
  'd',
  ...decisionFields,
  'session_id',
  'organization_id',
  'environment',
  'event',
)

async function readDecisions(db: Db, query: pg.QueryConfig): Promise<FullDecisionRow[]> {
  const { rows } = await db.query<
    Omit<FullDecisionRow, keyof DecisionEvidence> & { event: Buffer }
  >(query)
  return rows.map(({ event, ...row }) => ({ ...row, ...readEvidence(event) }))
}

const sortColumns = {
  last_seen: 'last_seen_at',
  first_seen: 'first_seen_at',
  seen_count: 'seen_count',
} as const

type StoredVisitor = RowOf<typeof visitors>

export interface VisitorRow extends VisitorLifecycle, Pick<StoredVisitor, 'storage' | 'anchors'> {
  id: string
  latest_request: Pick<StoredVisitor, 'user_agent' | 'ip_address'>
}

const visitorFields = [
  'visitor_id',
  'first_seen_at',
  'last_seen_at',
  'seen_count',
  'user_agent',
  'ip_address',
  'storage',
  'anchors',
] as const
type ListedVisitor = Pick<StoredVisitor, (typeof visitorFields)[number]>

function visitorRow({ visitor_id: id, user_agent, ip_address, ...row }: ListedVisitor): VisitorRow {
  return { id, ...row, latest_request: { user_agent, ip_address } }
}

export interface ListVisitors {
  limit: number
  sort?: ('last_seen' | 'first_seen' | 'seen_count') | undefined
  /** Sort value and id of the last row of the previous page. */
  after?: { value: number; id: string } | undefined
  search?: string | undefined
}

/** Lists visitors, by default the most recently seen first. */
export async function listVisitors(
  db: Db,
  scope: DataScope,
  { limit, sort = 'last_seen', after, search }: ListVisitors,
): Promise<Page<VisitorRow>> {
  const column = sortColumns[sort]
  const values: unknown[] = [scope.organizationId, scope.environment, limit + 1]
  const bind = (value: unknown) => `$${values.push(value)}`
  const where = ['organization_id = $1', 'environment = $2']
  if (after) where.push(`(${column}, visitor_id) < (${bind(after.value)}, ${bind(after.id)})`)
  if (search) where.push(matchesVisitor(search, bind))
  const { rows } = await db.query<ListedVisitor>(
    `select ${visitors.select('v', ...visitorFields)} from read.visitors v where ${where.join(' and ')}
     order by v.${column} desc, visitor_id desc limit $3`,
    values,
  )
  return { rows: rows.slice(0, limit).map(visitorRow), hasMore: rows.length > limit }
}

export type LatestSession = Pick<
  RowOf<typeof sessions>,
  ('session_id' | 'verdict' | 'risk_score' | 'client_user_id') | ('country' | 'browser' | 'os')
>

/** Returns the newest session by visitor id. */
export async function findLatestSessions(
  db: Db,
  { organizationId, environment }: DataScope,
  visitorIds: string[],
): Promise<Map<string, LatestSession>> {
  const { rows } = await db.query<LatestSession & { visitor_id: string }>(
    `select v.visitor_id, latest.* from unnest($3::text[]) as v (visitor_id) cross join lateral (
       select s.session_id, s.verdict, s.risk_score, s.client_user_id, s.country, s.browser, s.os from read.sessions s
       where s.organization_id = $1 and s.environment = $2 and s.visitor_id = v.visitor_id
       order by s.evaluated_at desc, s.session_id desc limit 1
     ) latest`,
    [organizationId, environment, visitorIds],
  )
  return new Map(rows.map(({ visitor_id, ...session }) => [visitor_id, session]))
}

function matchesVisitor(search: string, bind: (value: unknown) => string): string {
  if (isUnsearchable(search)) return 'false'
  const id = search.toLowerCase()
  if (id.startsWith('vid_')) return `visitor_id = ${bind(id)}`
  const selects = keySelects(id, {
    table: 'visitors',
    key: 'visitor_id',
    pattern: bind(containsPattern(search)),
    texts: ['agent_text', 'address_text'],
    ids: ['visitor_id'],
  })
  return `visitor_id in (${selects.join(' union ')})`
}

export interface VisitorActivityRow extends Pick<DecisionEvidence, 'request' | 'score_breakdown'> {
  session_id: string
  decision: DecisionRow
}

export interface VisitorDetailRow extends VisitorRow {
  vector: number[]
  activity: VisitorActivityRow[]
}

export async function findVisitor(
  db: Db,
  scope: DataScope,
  visitorId: string,
): Promise<VisitorDetailRow | undefined> {
  const values = [scope.organizationId, scope.environment, visitorId.toLowerCase()]
  const { rows } = await db.query<ListedVisitor & { vector: number[] }>({
    name: 'find-visitor',
    text: `select ${visitors.select('v', ...visitorFields, 'vector')} from read.visitors v
      where organization_id = $1 and environment = $2 and visitor_id = $3`,
    values,
  })
  const [record] = rows
  if (!record) return undefined
  const { vector, ...visitor } = record
  return { ...visitorRow(visitor), vector, activity: await recentDecisions(db, values) }
}

async function recentDecisions(db: Db, values: string[]): Promise<VisitorActivityRow[]> {
  const { rows } = await db.query<DecisionRow & { session_id: string; event: Buffer }>({
    name: 'visitor-activity',
    text: `select ${decisions.select('d', 'session_id', 'event', ...decisionFields)} from read.decisions d
      where d.organization_id = $1 and d.environment = $2 and d.visitor_id = $3
      order by d.evaluated_at desc, d.event_id desc limit 100`,
    values,
  })
  return rows.map(({ session_id, event, ...decision }) => {
    const { request, score_breakdown } = readEvent(event)
    return { session_id, decision, request, score_breakdown }
  })
}
