import { isPartOfId } from '../../infra/ids.ts'
import type { Db } from '../../infra/postgres/pool.ts'
import { containsPattern, isUnsearchable } from '../../infra/postgres/table.ts'
import type { Verdict } from '../../schemas/events.ts'
import type { DataScope, Page } from './scope.ts'
import { type DecisionRow, decisionFields, type LinkedVisitor, sessions } from './tables.ts'

export interface ListSessions {
  limit: number
  after?: { evaluatedAt: number; id: string } | undefined
  verdict?: Verdict | undefined
  search?: string | undefined
}

export interface SessionRow {
  id: string
  created_at: number
  client_user_id: string | null
  latest_decision: DecisionRow
  visitor: LinkedVisitor | null
}

export async function listSessions(
  db: Db,
  scope: DataScope,
  { search, ...options }: ListSessions,
): Promise<Page<SessionRow>> {
  if (!search) return querySessions(db, scope, { ...options, from: 'read.sessions' })
  if (isUnsearchable(search)) return { rows: [], hasMore: false }
  const id = search.toLowerCase()
  const exact = exactMatch(id)
  if (exact)
    return querySessions(db, scope, { ...options, from: 'read.sessions', searched: id, matching: exact })
  // What most sessions have is soon found among the newest. What is rare is found by the indexes.
  const searched = containsPattern(search)
  const newest = { ...options, searched, from: newestSessions(options), matching: hasText }
  const page = await querySessions(db, scope, newest)
  if (page.hasMore) return page
  const matching = foundBy(isPartOfId(id) ? [...textSearches, ...idSearches] : textSearches)
  return querySessions(db, scope, { ...options, searched, from: 'read.sessions', matching })
}

interface SessionsQuery extends Omit<ListSessions, 'search'> {
  from: string
  /** The fourth parameter of `matching`. */
  searched?: string
  /** A condition on the session `s`. */
  matching?: string
}

async function querySessions(
  db: Db,
  scope: DataScope,
  { limit, after, verdict, from, searched, matching }: SessionsQuery,
): Promise<Page<SessionRow>> {
  const values: unknown[] = [scope.organizationId, scope.environment, limit + 1]
  const bind = (value: unknown) => `$${values.push(value)}`
  if (searched !== undefined) bind(searched)
  const where = ['s.organization_id = $1', 's.environment = $2']
  if (after) where.push(`(s.evaluated_at, s.session_id) < (${bind(after.evaluatedAt)}, ${bind(after.id)})`)
  if (verdict) where.push(`s.verdict = ${bind(verdict)}`)
  if (matching) where.push(matching)
  const { rows } = await db.query<ListedSession>(
    `select ${sessionFields} from ${from} s where ${where.join(' and ')}
     order by s.evaluated_at desc, s.session_id desc limit $3`,
    values,
  )
  return { rows: rows.slice(0, limit).map(sessionRow), hasMore: rows.length > limit }
}

const newestCount = 500

// The newest sessions of the scope from a place on, whatever their verdict.
function newestSessions({ after }: Pick<ListSessions, 'after'>): string {
  const from = after ? `and (evaluated_at, session_id) < ($5, $6)` : ''
  return `(select * from read.sessions where organization_id = $1 and environment = $2 ${from}
    order by evaluated_at desc, session_id desc limit ${newestCount})`
}

const hasText = `(s.session_id like $4 or s.visitor_id like $4
  or exists (select from read.search_texts t
    where t.id in (s.page_text, s.agent_text, s.address_text, s.user_text) and t.text like $4)
  or exists (select from read.decisions d where d.session_id = s.session_id and d.event_id like $4))`

const inScope = 'organization_id = $1 and environment = $2'
const textSearches = ['page_text', 'agent_text', 'address_text', 'user_text'].map(
  (column) => `select session_id from read.sessions where ${column} in (
    select id from read.search_texts where ${inScope} and text like $4)`,
)
// No index has parts of ids: all ids of the scope are read.
const idSearches = [
  `select session_id from read.sessions where ${inScope} and (session_id like $4 or visitor_id like $4)`,
  `select session_id from read.decisions where ${inScope} and event_id like $4`,
]
const foundBy = (searches: string[]) => `s.session_id in (${searches.join(' union ')})`

type ListedSession = Omit<SessionRow, 'id' | 'latest_decision'> & DecisionRow & { session_id: string }

const sessionFields = sessions.select(
  's',
  'session_id',
  'created_at',
  'client_user_id',
  'visitor',
  ...decisionFields,
)

function sessionRow({
  session_id: id,
  created_at,
  client_user_id,
  visitor,
  ...rest
}: ListedSession): SessionRow {
  return { id, created_at, client_user_id, latest_decision: rest, visitor }
}

/**
 * service.md 4.2 rule 2. Ids match whole, in any case. Anything else is a substring of what a session shows: undefined.
 */
function exactMatch(id: string): string | undefined {
  const byEvent = 's.session_id = (select d.session_id from read.decisions d where d.event_id = $4)'
  if (id.startsWith('sid_')) return 's.session_id = $4'
  if (id.startsWith('evt_')) return byEvent
  if (id.startsWith('vid_')) return 's.visitor_id = $4'
  return /^[0-9a-f]{32}$/.test(id) ? `(s.session_id = $4 or ${byEvent})` : undefined
}
