import type { Db } from '../../infra/postgres/pool.ts'
import { containsPattern } from '../../infra/postgres/text.ts'
import type { Page } from './queries.ts'
import { type DecisionRecord, decisionFields, decisionRow } from './records.ts'
import type {
  DecisionEvidence,
  Scope,
  VisitorActivityRow,
  VisitorDetailRow,
  VisitorLifecycle,
  VisitorRow,
} from './rows.ts'

/** All newest or largest first; ties by id, descending. */
export type VisitorSort = 'last_seen' | 'first_seen' | 'seen_count'

const sortColumns = {
  last_seen: 'last_seen_at',
  first_seen: 'first_seen_at',
  seen_count: 'seen_count',
} as const

interface VisitorRecord extends VisitorLifecycle {
  visitor_id: string
  user_agent: string
  ip_address: string
  storage: string
  anchors: string
}

const fields = `visitor_id, first_seen_at::float8, last_seen_at::float8, seen_count, user_agent, ip_address,
  storage, anchors`

function visitorRow(record: VisitorRecord): VisitorRow {
  const { first_seen_at, last_seen_at, seen_count, user_agent, ip_address } = record
  return {
    id: record.visitor_id,
    first_seen_at,
    last_seen_at,
    seen_count,
    latest_request: { user_agent, ip_address },
    storage: JSON.parse(record.storage),
    anchors: JSON.parse(record.anchors),
  }
}

export interface ListVisitors {
  /** Rows at most. */
  limit: number
  sort?: VisitorSort | undefined
  /** The sort's value (a time or a count) and the id of the last row of the page before. */
  after?: { value: number; id: string } | undefined
  search?: string | undefined
}

/** Visitors seen in the scope; seen most recently first unless sorted otherwise. */
export async function listVisitors(
  db: Db,
  scope: Scope,
  { limit, sort = 'last_seen', after, search }: ListVisitors,
): Promise<Page<VisitorRow>> {
  const column = sortColumns[sort]
  const values: unknown[] = [scope.organizationId, scope.environment, limit + 1]
  const bind = (value: unknown) => `$${values.push(value)}`
  const where = ['organization_id = $1', 'environment = $2']
  if (after) where.push(`(${column}, visitor_id) < (${bind(after.value)}, ${bind(after.id)})`)
  if (search) where.push(searchCondition(search, bind))
  const { rows } = await db.query<VisitorRecord>(
    `select ${fields} from read.visitors v where ${where.join(' and ')}
     order by v.${column} desc, visitor_id desc limit $3`,
    values,
  )
  return { rows: rows.slice(0, limit).map(visitorRow), hasMore: rows.length > limit }
}

function searchCondition(search: string, bind: (value: unknown) => string): string {
  if (search.includes('\0')) return 'false'
  const id = search.toLowerCase()
  return id.startsWith('vid_')
    ? `visitor_id = ${bind(id)}`
    : `search_text like ${bind(containsPattern(search))}`
}

/** The visitor with its vector and its newest decisions; undefined when it was not seen in the scope. */
export async function findVisitor(
  db: Db,
  scope: Scope,
  visitorId: string,
): Promise<VisitorDetailRow | undefined> {
  const values = [scope.organizationId, scope.environment, visitorId.toLowerCase()]
  const { rows } = await db.query<VisitorRecord & { vector: string }>({
    name: 'find-visitor',
    text: `select ${fields}, vector from read.visitors
      where organization_id = $1 and environment = $2 and visitor_id = $3`,
    values,
  })
  const [record] = rows
  if (!record) return undefined
  return {
    ...visitorRow(record),
    vector: JSON.parse(record.vector),
    activity: await recentDecisions(db, values),
  }
}

async function recentDecisions(db: Db, values: string[]): Promise<VisitorActivityRow[]> {
  const { rows } = await db.query<DecisionRecord & { session_id: string; evidence: string }>({
    name: 'visitor-activity',
    text: `select d.session_id, d.evidence, ${decisionFields('d')} from read.decisions d
      where d.organization_id = $1 and d.environment = $2 and d.visitor_id = $3
      order by d.evaluated_at desc, d.event_id desc limit 100`,
    values,
  })
  return rows.map((record) => {
    const { request, score_breakdown }: DecisionEvidence = JSON.parse(record.evidence)
    return { session_id: record.session_id, decision: decisionRow(record), request, score_breakdown }
  })
}
