import type { Db } from '../../infra/postgres/pool.ts'
import { containsPattern, isUnsearchable } from '../../infra/postgres/table.ts'
import type { SessionFacts } from './facts.ts'
import type { Bind } from './filter-fields.ts'
import {
  conditionsOf,
  hasPersonFilter,
  hasUsableIndex,
  type SessionFilters,
  timeConditions,
} from './filters.ts'
import { type SessionMark, selectMark } from './marks.ts'
import type { DataScope, Page } from './scope.ts'
import { exactMatch, hasText, inScope, newestFirst, newestSessions, textMatch } from './search.ts'
import { type DecisionRow, decisionFields, type LinkedVisitor, sessions } from './tables.ts'

export interface ListSessions {
  limit: number
  after?: SessionPosition | undefined
  filters?: SessionFilters | undefined
  search?: string | undefined
  /** Number of sessions that a page reads if the filters have no usable index. */
  windowSize?: number
}

/** Position in a list ordered by time, newest first. */
export interface SessionPosition {
  evaluatedAt: number
  id: string
}

export interface SessionRow {
  id: string
  created_at: number
  client_user_id: string | null
  latest_decision: DecisionRow
  visitor: LinkedVisitor | null
  mark: SessionMark | null
  /** null once the decisions have expired. */
  facts: ListedFacts | null
}

const listedFacts = [
  ...([
    'scoring_version',
    'signals',
    'page_host',
    'page_path',
    'country',
    'asn',
    'network_holder',
  ] as const),
  ...(['network', 'browser', 'browser_version', 'os', 'form_factor', 'handed_off_at'] as const),
  ...(['agent_status', 'agent_provider', 'agent_product'] as const),
] as const
export type ListedFacts = Pick<SessionFacts, (typeof listedFacts)[number]>

export interface SessionRowPage extends Page<SessionRow> {
  /** Position of the last session that was read, if the filters have no usable index; null = all were read. */
  readTo?: SessionPosition | null
}

/**
 * Lists sessions. If the filters have no usable index, each page reads a limited window of sessions, so it can be short
 * or empty although more pages follow.
 */
export async function listSessions(
  db: Db,
  scope: DataScope,
  { search, filters = {}, ...page }: ListSessions,
): Promise<SessionRowPage> {
  const options = { ...page, filters }
  if (!search && !hasUsableIndex(filters)) return readWindow(db, scope, options)
  if (!search) return querySessions(db, scope, { ...options, from: byVerdict })
  if (isUnsearchable(search)) return { rows: [], hasMore: false }
  const id = search.toLowerCase()
  const exact = exactMatch(id)
  if (exact) return querySessions(db, scope, { ...options, parameter: id, condition: exact })
  // Looks for frequent texts among the newest sessions, then for rare ones through the indexes.
  const parameter = containsPattern(search)
  const newest = { ...options, parameter, from: fromNewest, condition: hasText }
  const newestPage = await querySessions(db, scope, newest)
  if (newestPage.hasMore) return newestPage
  return querySessions(db, scope, { ...options, parameter, condition: textMatch(id) })
}

interface SessionsQuery extends Omit<ListSessions, 'search'> {
  filters: SessionFilters
  /** Default: all sessions. */
  from?: (query: SessionsQuery, bind: Bind) => string
  /** $4 of `condition`. */
  parameter?: string
  /** SQL condition on the session `s`. */
  condition?: string
}

async function querySessions(
  db: Db,
  scope: DataScope,
  query: SessionsQuery,
): Promise<Page<SessionRow>> {
  const { limit, after, filters, from, parameter, condition } = query
  const { values, bind } = createBind(scope, limit)
  if (parameter !== undefined) bind(parameter)
  const where = [inScope, ...cursorCondition(after, bind), ...conditionsOf(scope, filters, bind)]
  if (condition) where.push(condition)
  const { rows } = await db.query<ListedSession>(
    `select ${sessionFields} from ${from?.(query, bind) ?? 'read.sessions'} s
     where ${where.join(' and ')} ${newestFirst} limit $3`,
    values,
  )
  return pageOf(rows, limit)
}

function createBind(scope: DataScope, limit: number) {
  const values: unknown[] = [scope.organizationId, scope.environment, limit + 1]
  return { values, bind: (value: unknown) => `$${values.push(value)}` }
}

const cursorCondition = (after: SessionPosition | undefined, bind: Bind): string[] =>
  after ? [`(s.evaluated_at, s.session_id) < (${bind(after.evaluatedAt)}, ${bind(after.id)})`] : []

const fromNewest = ({ after }: SessionsQuery, bind: Bind): string =>
  newestSessions(cursorCondition(after, bind))

// Returns a union of the newest sessions of each verdict, because Postgres scans the index in order only for a single
// verdict. Filters by visitor or user have their own index.
function byVerdict({ after, filters }: SessionsQuery, bind: Bind): string {
  const { verdict: verdicts = [] } = filters
  if (verdicts.length < 2 || hasPersonFilter(filters)) return 'read.sessions'
  const conditions = [...cursorCondition(after, bind), ...timeConditions(filters, bind)]
  const selects = verdicts.map((verdict) => {
    const where = [inScope, `s.verdict = ${bind(verdict)}`, ...conditions]
    return `(select * from read.sessions s where ${where.join(' and ')} ${newestFirst} limit $3)`
  })
  return `(${selects.join(' union all ')})`
}

const defaultWindowSize = 50_000
// Number of sessions to read first, enough to fill a page with a frequent value.
const firstReadSize = 5000

/**
 * Reads a page from a window of sessions. If the newest ones do not fill the page, finds the end of the window and
 * reads up to it through the index, which is twice as fast as filtering a subquery. Uses a single statement, because a
 * session that changes its position between two statements could be skipped.
 */
async function readWindow(
  db: Db,
  scope: DataScope,
  { limit, after, filters, windowSize = defaultWindowSize }: SessionsQuery,
): Promise<SessionRowPage> {
  const { values, bind } = createBind(scope, limit)
  const { since: _, until: __, ...fieldFilters } = filters
  const window = [inScope, ...cursorCondition(after, bind), ...timeConditions(filters, bind)]
  const inWindow = window.join(' and ')
  const conditions = conditionsOf(scope, fieldFilters, bind).join(' and ')
  const isShort = '(select count(*) from newest) < $3'
  const end = (column: string) => `(select ${column} from ending)`
  const { rows } = await db.query<ListedSession & { end_at: number; end_id: string | null }>(
    `with newest as materialized (
       select s.session_id, s.evaluated_at from (
         select * from read.sessions s where ${inWindow} ${newestFirst} limit ${Math.min(firstReadSize, windowSize)}
       ) s where ${conditions} ${newestFirst} limit $3
     ),
     ending as materialized (
       select s.session_id, s.evaluated_at from read.sessions s where ${inWindow} and ${isShort}
       ${newestFirst} limit 1 offset ${windowSize - 1}
     ),
     page as materialized (
       select * from newest where not ${isShort}
       union all
       (select s.session_id, s.evaluated_at from read.sessions s where ${inWindow} and ${conditions} and ${isShort}
         and (s.evaluated_at, s.session_id) >= (coalesce(${end('evaluated_at')}, 0), coalesce(${end('session_id')}, ''))
        ${newestFirst} limit $3)
     )
     select ${sessionFields}, ending.evaluated_at::float8 as end_at, ending.session_id as end_id
     from (values (1)) as always left join ending on true
     left join (page join read.sessions s using (session_id)) on true ${newestFirst}`,
    values,
  )
  // Without a match, there is a single row that only has the end of the window.
  const matching = rows.filter(({ session_id }) => session_id !== null)
  const page = pageOf(matching, limit)
  const last = page.rows.at(-1)
  if (page.hasMore && last) return { ...page, readTo: positionOf(last) }
  const [first] = rows
  if (!first?.end_id) return { ...page, readTo: null }
  return { ...page, hasMore: true, readTo: { evaluatedAt: first.end_at, id: first.end_id } }
}

const positionOf = ({
  id,
  latest_decision: { evaluated_at: evaluatedAt },
}: SessionRow): SessionPosition => ({
  evaluatedAt,
  id,
})

function pageOf(rows: ListedSession[], limit: number): Page<SessionRow> {
  return { rows: rows.slice(0, limit).map(sessionRow), hasMore: rows.length > limit }
}

type ListedSession = Omit<SessionRow, 'id' | 'latest_decision' | 'facts'> &
  DecisionRow &
  ListedFacts & { session_id: string }

const columns = [
  ...(['session_id', 'created_at', 'client_user_id', 'visitor'] as const),
  ...decisionFields,
  ...listedFacts,
] as const
const sessionFields = `${sessions.select('s', ...columns)}, ${selectMark('s')} as mark`

function sessionRow({
  session_id: id,
  created_at,
  client_user_id,
  visitor,
  mark,
  ...rest
}: ListedSession): SessionRow {
  const facts = rest.scoring_version === null ? null : rest
  return { id, created_at, client_user_id, latest_decision: rest, visitor, mark, facts }
}
