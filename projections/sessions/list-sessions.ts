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
import {
  exactMatch,
  findMatches,
  firstSessions,
  hasText,
  inScope,
  maxMatches,
  type TimeOrder,
} from './search.ts'
import { type DecisionRow, decisionFields, type LinkedVisitor, sessions } from './tables.ts'

type SessionSort = 'evaluated_at' | 'risk_score'

export interface ListSessions {
  limit: number
  /** Default: by the time of the newest decision. A search can't be sorted by score. */
  sort?: SessionSort | undefined
  /** Default: descending. */
  order?: 'asc' | 'desc' | undefined
  after?: SessionPosition | undefined
  filters?: SessionFilters | undefined
  search?: string | undefined
  /** Number of sessions that a page reads if the filters have no usable index. */
  windowSize?: number
}

/** Position in a list. */
export interface SessionPosition {
  /** Time of the newest decision, or the risk score in a list sorted by score. */
  value: number
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
    'signal_points',
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
  { search, filters = {}, order = 'desc', sort, ...page }: ListSessions,
): Promise<SessionRowPage> {
  const options = { ...page, filters, order: timeOrders[order] }
  if (sort === 'risk_score') return queryByScore(db, scope, options)
  if (!search && !hasUsableIndex(filters)) return readWindow(db, scope, options)
  if (!search) return querySessions(db, scope, { ...options, from: byVerdict })
  if (isUnsearchable(search)) return { rows: [], hasMore: false }
  const id = search.toLowerCase()
  const exact = exactMatch(id)
  if (exact) return querySessions(db, scope, { ...options, parameter: id, condition: exact })
  return searchText(db, scope, {
    query: { ...options, parameter: containsPattern(search) },
    search: id,
  })
}

/**
 * Looks for frequent texts among the first sessions, then for rare ones through the indexes. If these find too many, the
 * page reads a window of sessions.
 */
async function searchText(
  db: Db,
  scope: DataScope,
  { query, search }: { query: SessionsQuery; search: string },
): Promise<SessionRowPage> {
  const first = await querySessions(db, scope, { ...query, from: fromFirst, condition: hasText })
  if (first.hasMore) return first
  const { values, bind } = createBind(scope, maxMatches)
  bind(query.parameter)
  const ids = await findMatches(db, values, { search, compared: () => rangeOf(query, bind) })
  if (ids) return querySessions(db, scope, { ...query, parameter: ids, from: fromIds })
  return readWindow(db, scope, { ...query, windowSize: searchWindowSize, condition: hasText })
}

// Checking the texts of a session takes five times as long as checking its filters.
const searchWindowSize = 5000
const firstSearchSize = 500

const fromFirst = (query: SessionsQuery, bind: Bind): string =>
  firstSessions(rangeOf(query, bind), firstSearchSize)

const rangeOf = (query: SessionsQuery, bind: Bind) => ({
  conditions: rangeConditions(query, bind),
  orderBy: orderBy('evaluated_at', query.order),
})

// Looks up each session, because Postgres would read all of them in order to find the first ones.
const fromIds = (): string => `(select s.* from unnest($4::text[]) as matching (id)
  cross join lateral (select * from read.sessions where session_id = matching.id offset 0) s)`

const timeOrders: Record<'asc' | 'desc', TimeOrder> = {
  asc: { direction: 'asc', isAfter: '>' },
  desc: { direction: 'desc', isAfter: '<' },
}
const orderBy = (column: SessionSort, { direction }: TimeOrder) =>
  `order by s.${column} ${direction}, s.session_id ${direction}`

interface SessionsQuery extends Omit<ListSessions, 'search' | 'sort' | 'order'> {
  filters: SessionFilters
  order: TimeOrder
  /** Default: all sessions. */
  from?: (query: SessionsQuery, bind: Bind) => string
  /** $4 of `condition`. */
  parameter?: string | string[]
  /** SQL condition on the session `s`. */
  condition?: string
}

async function querySessions(
  db: Db,
  scope: DataScope,
  query: SessionsQuery,
): Promise<Page<SessionRow>> {
  const { limit, filters, order, from, parameter, condition } = query
  const { values, bind } = createBind(scope, limit)
  if (parameter !== undefined) bind(parameter)
  const where = [
    inScope,
    ...rangeConditions(query, bind),
    ...conditionsOf(scope, withoutTimes(filters), bind),
  ]
  if (condition) where.push(condition)
  const { rows } = await db.query<ListedSession>(
    `select ${sessionFields} from ${from?.(query, bind) ?? 'read.sessions'} s
     where ${where.join(' and ')} ${orderBy('evaluated_at', order)} limit $3`,
    values,
  )
  return pageOf(rows, limit)
}

/**
 * Reads a page in order of the score. Reads every session of the period, because no index has the scores in order, but
 * only from the covering index: rows are read for the page alone.
 */
async function queryByScore(
  db: Db,
  scope: DataScope,
  query: SessionsQuery,
): Promise<Page<SessionRow>> {
  const { limit, filters, order } = query
  const { values, bind } = createBind(scope, limit)
  const where = [
    inScope,
    ...cursorCondition(query, bind, 'risk_score'),
    ...conditionsOf(scope, filters, bind),
  ]
  const inOrder = orderBy('risk_score', order)
  const { rows } = await db.query<ListedSession>(
    `with page as materialized (
       select s.session_id from read.sessions s where ${where.join(' and ')} ${inOrder} limit $3
     )
     select ${sessionFields} from page join read.sessions s using (session_id) ${inOrder}`,
    values,
  )
  return pageOf(rows, limit)
}

/** Largest number of sessions that a list can sort by score. Reading them takes about half a second. */
export const maxSortedSessions = 500_000

/** Returns true if the period of the filters has more sessions than a list can sort by score. */
export async function hasTooManyToSort(
  db: Db,
  scope: DataScope,
  filters: SessionFilters,
  max = maxSortedSessions,
): Promise<boolean> {
  // An index finds the sessions of visitors and users.
  if (hasPersonFilter(filters)) return false
  const values: unknown[] = [scope.organizationId, scope.environment]
  const where = [inScope, ...timeConditions(filters, (value) => `$${values.push(value)}`)]
  const { rowCount } = await db.query(
    `select from read.sessions s where ${where.join(' and ')} limit 1 offset ${max}`,
    values,
  )
  return rowCount !== 0
}

function createBind(scope: DataScope, limit: number) {
  const values: unknown[] = [scope.organizationId, scope.environment, limit + 1]
  return { values, bind: (value: unknown) => `$${values.push(value)}` }
}

const cursorCondition = (
  { after, order }: Pick<SessionsQuery, 'after' | 'order'>,
  bind: Bind,
  column: SessionSort = 'evaluated_at',
): string[] =>
  after
    ? [`(s.${column}, s.session_id) ${order.isAfter} (${bind(after.value)}, ${bind(after.id)})`]
    : []

// Limits the sessions to the period of the filters, after the cursor.
const rangeConditions = (query: SessionsQuery, bind: Bind): string[] => [
  ...startConditions(query, bind),
  ...periodConditions(query, 'end', bind),
]

// The cursor lies within the period, so it is the only condition at the start. With two conditions on the same side, one
// of them on (evaluated_at, session_id), PostgreSQL 18 can read all sessions between them.
const startConditions = (query: SessionsQuery, bind: Bind): string[] =>
  query.after ? cursorCondition(query, bind) : periodConditions(query, 'start', bind)

function periodConditions(
  { filters: { since, until }, order }: SessionsQuery,
  side: 'start' | 'end',
  bind: Bind,
): string[] {
  const isEarly = (side === 'start') === (order.direction === 'asc')
  return timeConditions(isEarly ? { since } : { until }, bind)
}

const withoutTimes = ({ since: _, until: __, ...filters }: SessionFilters): SessionFilters =>
  filters

// Returns a union of the first sessions of each verdict, because Postgres scans the index in order only for a single
// verdict. Filters by visitor or user have their own index.
function byVerdict(query: SessionsQuery, bind: Bind): string {
  const { filters, order } = query
  const { verdict: verdicts = [] } = filters
  if (verdicts.length < 2 || hasPersonFilter(filters)) return 'read.sessions'
  const conditions = rangeConditions(query, bind)
  const selects = verdicts.map((verdict) => {
    const where = [inScope, `s.verdict = ${bind(verdict)}`, ...conditions]
    return `(select * from read.sessions s where ${where.join(' and ')} ${orderBy('evaluated_at', order)} limit $3)`
  })
  return `(${selects.join(' union all ')})`
}

const defaultWindowSize = 50_000
// Part of the window to read first, enough to fill a page with a frequent value.
const firstReadShare = 0.1

/**
 * Reads a page from a window of sessions. If the first ones do not fill the page, finds the end of the window and
 * reads up to it through the index, which is twice as fast as filtering a subquery. Uses a single statement, because a
 * session that changes its position between two statements could be skipped.
 */
async function readWindow(db: Db, scope: DataScope, query: SessionsQuery): Promise<SessionRowPage> {
  const { limit, filters, order, windowSize = defaultWindowSize, parameter, condition } = query
  const { values, bind } = createBind(scope, limit)
  if (parameter !== undefined) bind(parameter)
  const inOrder = orderBy('evaluated_at', order)
  const start = [inScope, ...startConditions(query, bind)]
  const inPeriod = [...start, ...periodConditions(query, 'end', bind)].join(' and ')
  const conditions = [
    ...conditionsOf(scope, withoutTimes(filters), bind),
    ...(condition ? [condition] : []),
  ].join(' and ')
  const isShort = '(select count(*) from first_read) < $3'
  const end = (column: string) => `(select ${column} from ending)`
  // Without an end, the window ends with the period.
  const { since = 0, until = Number.MAX_SAFE_INTEGER } = filters
  const [isBefore, lastTime] = order.direction === 'desc' ? ['>=', since] : ['<=', until]
  const { rows } = await db.query<ListedSession & { end_at: number; end_id: string | null }>(
    `with first_read as materialized (
       select s.session_id, s.evaluated_at from (
         select * from read.sessions s where ${inPeriod} ${inOrder} limit ${Math.ceil(windowSize * firstReadShare)}
       ) s where ${conditions} ${inOrder} limit $3
     ),
     ending as materialized (
       select s.session_id, s.evaluated_at from read.sessions s where ${inPeriod} and ${isShort}
       ${inOrder} limit 1 offset ${windowSize - 1}
     ),
     page as materialized (
       select * from first_read where not ${isShort}
       union all
       (select s.session_id, s.evaluated_at from read.sessions s where ${start.join(' and ')} and ${conditions} and ${isShort}
         and (s.evaluated_at, s.session_id) ${isBefore} (coalesce(${end('evaluated_at')}, ${lastTime}), coalesce(${end('session_id')}, ''))
        ${inOrder} limit $3)
     )
     select ${sessionFields}, ending.evaluated_at::float8 as end_at, ending.session_id as end_id
     from (values (1)) as always left join ending on true
     left join (page join read.sessions s using (session_id)) on true ${inOrder}`,
    values,
  )
  // Without a match, there is a single row that only has the end of the window.
  const matching = rows.filter(({ session_id }) => session_id !== null)
  const page = pageOf(matching, limit)
  const last = page.rows.at(-1)
  if (page.hasMore && last) return { ...page, readTo: positionOf(last) }
  const [first] = rows
  if (!first?.end_id) return { ...page, readTo: null }
  return { ...page, hasMore: true, readTo: { value: first.end_at, id: first.end_id } }
}

const positionOf = ({
  id,
  latest_decision: { evaluated_at: value },
}: SessionRow): SessionPosition => ({ value, id })

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
