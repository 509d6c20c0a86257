import { isLegacyId, isPartOfId } from '../../infra/ids.ts'
import type { Db } from '../../infra/postgres/pool.ts'
import { containsPattern, isUnsearchable } from '../../infra/postgres/table.ts'
import type { Verdict } from '../../schemas/events.ts'
import { type SessionMark, selectMark } from './marks.ts'
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
  mark: SessionMark | null
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
  // A text of most sessions is soon found among the newest ones. A rare one is found by the indexes.
  const searched = containsPattern(search)
  const newest = { ...options, searched, from: newestSessions(options), matching: hasText }
  const page = await querySessions(db, scope, newest)
  if (page.hasMore) return page
  return querySessions(db, scope, { ...options, searched, from: 'read.sessions', matching: foundBy(id) })
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

const sessionTexts = ['page_text', 'agent_text', 'address_text', 'user_text']

// The scope is $1 and $2, and the pattern $4.
function foundBy(search: string): string {
  const found = selectsOf(search, {
    ...{ table: 'sessions', key: 'session_id', pattern: '$4' },
    texts: sessionTexts,
    ids: ['session_id', 'visitor_id'],
  })
  const byDecision = { table: 'decisions', key: 'session_id', pattern: '$4', texts: [], ids: ['event_id'] }
  return `s.session_id in (${[...found, ...selectsOf(search, byDecision)].join(' union ')})`
}

interface Searched {
  table: string
  key: string
  /** A parameter: what `like` compares with. */
  pattern: string
  /** Columns with the id of a text. */
  texts: string[]
  ids: string[]
}

/**
 * Selects the keys of rows of which a text, or an id, has the pattern. The scope is $1 and $2. No index has parts of
 * ids, so all ids of the scope are read, where the search may be a part of one.
 */
export function selectsOf(search: string, { table, key, pattern, texts, ids }: Searched): string[] {
  const inScope = 'organization_id = $1 and environment = $2'
  const withText = `select id from read.search_texts where ${inScope} and text like ${pattern}`
  const byText = texts.map((column) => `select ${key} from read.${table} where ${column} in (${withText})`)
  if (!isPartOfId(search)) return byText
  const hasPart = ids.map((column) => `${column} like ${pattern}`).join(' or ')
  return [...byText, `select ${key} from read.${table} where ${inScope} and (${hasPart})`]
}

type ListedSession = Omit<SessionRow, 'id' | 'latest_decision'> & DecisionRow & { session_id: string }

const columns = ['session_id', 'created_at', 'client_user_id', 'visitor', ...decisionFields] as const
const sessionFields = `${sessions.select('s', ...columns)}, ${selectMark('s')} as mark`

function sessionRow({
  session_id: id,
  created_at,
  client_user_id,
  visitor,
  mark,
  ...rest
}: ListedSession): SessionRow {
  return { id, created_at, client_user_id, latest_decision: rest, visitor, mark }
}

// service.md 4.2 rule 2. Ids match whole, in any case. Anything else is a substring of what a session shows: undefined.
function exactMatch(id: string): string | undefined {
  const ofEvent = '(select d.session_id from read.decisions d where d.event_id = $4)'
  if (id.startsWith('sid_')) return 's.session_id = $4'
  if (id.startsWith('evt_')) return `s.session_id = ${ofEvent}`
  if (id.startsWith('vid_')) return 's.visitor_id = $4'
  // It may be of an event or a session. Two conditions would read every session of the scope.
  return isLegacyId(id) ? `s.session_id = coalesce(${ofEvent}, $4)` : undefined
}
