import type { Db } from '../../infra/postgres/pool.ts'
import { containsPattern, isUnsearchable } from '../../infra/postgres/table.ts'
import type { SessionFacts } from './facts.ts'
import type { Bind } from './filter-fields.ts'
import { conditionsOf, isExact, isPerson, type SessionFilters, timeConditions } from './filters.ts'
import { type SessionMark, selectMark } from './marks.ts'
import type { DataScope, Page } from './scope.ts'
import { exactMatch, foundBy, hasText, inScope, newestFirst, newestSessions } from './search.ts'
import { type DecisionRow, decisionFields, type LinkedVisitor, sessions } from './tables.ts'

export interface ListSessions {
  limit: number
  after?: SessionPlace | undefined
  filters?: SessionFilters | undefined
  search?: string | undefined
  /** How many sessions are read for a page that no index finds. */
  windowSize?: number
}

/** Sessions are listed by time, newest first. */
export interface SessionPlace {
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
  /** null once its decisions have ended. */
  facts: ListedFacts | null
}

// What a row of a table shows, and what sessions are filtered by.
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
  /**
   * How far back sessions were read, where only a part of them is read for a page; null = to the end. The list goes on
   * from there where there is no last row to go on from.
   */
  readTo?: SessionPlace | null
}

/**
 * By what has an index of its own, all sessions are found. With other filters a page reads so many sessions back from its
 * place, whether or not they meet them: it may be short or empty then, and more may follow.
 */
export async function listSessions(
  db: Db,
  scope: DataScope,
  { search, filters = {}, ...place }: ListSessions,
): Promise<SessionRowPage> {
  const options = { ...place, filters }
  if (!search && !isExact(filters)) return readWindow(db, scope, options)
  if (!search) return querySessions(db, scope, { ...options, from: ofVerdicts })
  if (isUnsearchable(search)) return { rows: [], hasMore: false }
  const id = search.toLowerCase()
  const exact = exactMatch(id)
  if (exact) return querySessions(db, scope, { ...options, searched: id, matching: exact })
  // A text of most sessions is soon found among the newest ones. A rare one is found by the indexes.
  const searched = containsPattern(search)
  const newest = { ...options, searched, from: fromNewest, matching: hasText }
  const page = await querySessions(db, scope, newest)
  if (page.hasMore) return page
  return querySessions(db, scope, { ...options, searched, matching: foundBy(id) })
}

interface SessionsQuery extends Omit<ListSessions, 'search'> {
  filters: SessionFilters
  /** Default: all sessions. */
  from?: (query: SessionsQuery, bind: Bind) => string
  /** The fourth parameter of `matching`. */
  searched?: string
  /** A condition on the session `s`. */
  matching?: string
}

async function querySessions(
  db: Db,
  scope: DataScope,
  query: SessionsQuery,
): Promise<Page<SessionRow>> {
  const { limit, after, filters, from, searched, matching } = query
  const { values, bind } = parameters(scope, limit)
  if (searched !== undefined) bind(searched)
  const where = [inScope, ...before(after, bind), ...conditionsOf(scope, filters, bind)]
  if (matching) where.push(matching)
  const { rows } = await db.query<ListedSession>(
    `select ${sessionFields} from ${from?.(query, bind) ?? 'read.sessions'} s
     where ${where.join(' and ')} ${newestFirst} limit $3`,
    values,
  )
  return pageOf(rows, limit)
}

function parameters(scope: DataScope, limit: number) {
  const values: unknown[] = [scope.organizationId, scope.environment, limit + 1]
  return { values, bind: (value: unknown) => `$${values.push(value)}` }
}

const before = (place: SessionPlace | undefined, bind: Bind): string[] =>
  place ? [`(s.evaluated_at, s.session_id) < (${bind(place.evaluatedAt)}, ${bind(place.id)})`] : []

const fromNewest = ({ after }: SessionsQuery, bind: Bind): string =>
  newestSessions(before(after, bind))

// Postgres reads the index by verdict in its order for one verdict only. A visitor or a user has an index that finds
// few sessions, of which the newest by verdict alone may be none.
function ofVerdicts({ after, filters }: SessionsQuery, bind: Bind): string {
  const { verdict: verdicts = [] } = filters
  if (verdicts.length < 2 || isPerson(filters)) return 'read.sessions'
  const place = [...before(after, bind), ...timeConditions(filters, bind)]
  const each = verdicts.map((verdict) => {
    const where = [inScope, `s.verdict = ${bind(verdict)}`, ...place]
    return `(select * from read.sessions s where ${where.join(' and ')} ${newestFirst} limit $3)`
  })
  return `(${each.join(' union all ')})`
}

/** Sessions that are read for a page. */
const listWindow = 50_000
/** A page of a frequent value is full within so many sessions. */
const newestRead = 5000

/**
 * One statement, so that the window's end is of the same moment as its rows: a session that moved in between would let
 * the end lie behind sessions that were not read. Where the newest sessions of the window do not fill the page, its end
 * is looked for, and what is between is read by the index with the conditions, which is twice as fast as reading the
 * window as a subquery.
 */
async function readWindow(
  db: Db,
  scope: DataScope,
  { limit, after, filters, windowSize = listWindow }: SessionsQuery,
): Promise<SessionRowPage> {
  const { values, bind } = parameters(scope, limit)
  const { since: _, until: __, ...others } = filters
  const place = [inScope, ...before(after, bind), ...timeConditions(filters, bind)].join(' and ')
  const conditions = conditionsOf(scope, others, bind).join(' and ')
  const isShort = '(select count(*) from newest) < $3'
  const lowest = (column: string) => `(select ${column} from ending)`
  const { rows } = await db.query<ListedSession & { end_at: number; end_id: string | null }>(
    `with newest as materialized (
       select s.session_id, s.evaluated_at from (
         select * from read.sessions s where ${place} ${newestFirst} limit ${Math.min(newestRead, windowSize)}
       ) s where ${conditions} ${newestFirst} limit $3
     ),
     ending as materialized (
       select s.session_id, s.evaluated_at from read.sessions s where ${place} and ${isShort}
       ${newestFirst} limit 1 offset ${windowSize - 1}
     ),
     page as materialized (
       select * from newest where not ${isShort}
       union all
       (select s.session_id, s.evaluated_at from read.sessions s where ${place} and ${conditions} and ${isShort}
         and (s.evaluated_at, s.session_id) >= (coalesce(${lowest('evaluated_at')}, 0), coalesce(${lowest('session_id')}, ''))
        ${newestFirst} limit $3)
     )
     select ${sessionFields}, ending.evaluated_at::float8 as end_at, ending.session_id as end_id
     from (values (1)) as one left join ending on true
     left join (page join read.sessions s using (session_id)) on true ${newestFirst}`,
    values,
  )
  // Where no session was found, one row has the end alone.
  const found = rows.filter(({ session_id }) => session_id !== null)
  const page = pageOf(found, limit)
  const last = page.rows.at(-1)
  if (page.hasMore && last) return { ...page, readTo: placeOf(last) }
  const [end] = rows
  if (!end?.end_id) return { ...page, readTo: null }
  return { ...page, hasMore: true, readTo: { evaluatedAt: end.end_at, id: end.end_id } }
}

const placeOf = ({
  id,
  latest_decision: { evaluated_at: evaluatedAt },
}: SessionRow): SessionPlace => ({
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
