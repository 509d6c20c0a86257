import type pg from 'pg'
import { type Db, type Tx, transaction } from '../../infra/postgres/pool.ts'
import {
  type CountQuery,
  type CountSources,
  countGroups,
  intervals,
  isFactField,
  rollUpFieldFor,
  type SessionGroup,
  type TimeRange,
} from './count-groups.ts'
import { verdict as verdictSchema } from './decision-schemas.ts'
import type { Bind } from './filter-fields.ts'
import {
  conditionsOf,
  hasFactFilters,
  hasUsableIndex,
  readsRows,
  rowCost,
  type SessionFilters,
} from './filters.ts'
import { hourMs, hourStartSql } from './hours.ts'
import type { DataScope } from './scope.ts'
import { inScope } from './search.ts'

export interface CountSessions extends Omit<CountQuery, 'needsFacts'> {
  filters: SessionFilters & TimeRange
  /** Default: true. False reads sessions even where hourly roll-ups suffice. */
  usesRollUps?: boolean
  /** Default: true. False leaves out visitors and users, whose count takes longer than all other counts. */
  countsDistinct?: boolean | undefined
  maxRows?: number
}

export interface SessionCounts {
  // Period that was counted, in epoch milliseconds.
  since: number
  until: number
  /** True if there were too many sessions and only the newest were counted. */
  isPartial: boolean
  sessions: number
  /** Sessions whose filtered or grouped fields have expired; not included in `sessions`. */
  ended: number
  distinct: Distinct
  groups: SessionGroup[]
}

type Distinct =
  | { visitors: number; users: number; reason: null }
  | { visitors: null; users: null; reason: DistinctMissing }
type DistinctMissing = 'over_seven_days' | 'over_a_million_sessions' | 'not_requested'

// Rate-limit units of a count that reads `maxRowsOf` rows.
const maxUnits = 40

/** Returns the number of rows that can be read within the statement timeout. */
function maxRowsOf({ filters, groupBy }: CountQuery): number {
  const fields = groupBy.filter((field) => field !== 'verdict')
  const isList = fields.includes('signal') || fields.includes('attribution')
  // Signals, visitors and users are not in the index, and two fields have many combinations.
  const isSlow = isList || fields.length > 1 || readsRows(filters)
  // A session counts once per signal.
  const rows = isList && fields.length > 1 ? 20_000 : isSlow ? 400_000 : 2_000_000
  return Math.floor(rows / rowCost(filters))
}

/** Runs `work` in a read-only snapshot, so that all counts agree. */
export function inSnapshot<T>(pool: pg.Pool, work: (tx: Tx) => Promise<T>): Promise<T> {
  return transaction(pool, async (tx) => {
    await tx.query('set transaction isolation level repeatable read, read only')
    return work(tx)
  })
}

interface Plan {
  query: CountSessions & CountQuery
  sources: PlannedSources
  /** Rate-limit units of the rows to read. */
  units: number
}

export async function planCount(tx: Tx, scope: DataScope, options: CountSessions): Promise<Plan> {
  const { filters, groupBy } = options
  const { since, until } = filters
  const query = { ...options, needsFacts: hasFactFilters(filters) || groupBy.some(isFactField) }
  const hours = since < until ? await readHours(tx, scope, { since, until }) : []
  const sources = planSources(hours, { since, until }, query)
  return { query, sources, units: Math.ceil((maxUnits * sources.rows) / maxRowsOf(query)) }
}

export const countSessions = (pool: pg.Pool, scope: DataScope, query: CountSessions) =>
  inSnapshot(pool, async (tx) => countPlanned(tx, scope, await planCount(tx, scope, query)))

export async function countPlanned(
  tx: Tx,
  scope: DataScope,
  { query, sources }: Plan,
): Promise<SessionCounts> {
  const { since, until, isPartial } = sources
  if (since >= until) return { ...noSessions, since, until }
  const groups = await countGroups(tx, scope, { ...query, ...sources })
  // A session counts once per signal or label, so these groups do not add up to the number of sessions.
  const isList = query.groupBy.some((field) => field === 'signal' || field === 'attribution')
  const ungrouped = { ...query, ...sources, groupBy: [], interval: 'none' } as const
  const totals = sumGroups(isList ? await countGroups(tx, scope, ungrouped) : groups)
  const distinct = await countDistinct(tx, scope, ungrouped)
  return { since, until, isPartial, ...totals, distinct, groups }
}

const noSessions: Omit<SessionCounts, 'since' | 'until'> = {
  isPartial: false,
  sessions: 0,
  ended: 0,
  groups: [],
  distinct: { visitors: 0, users: 0, reason: null },
}

function sumGroups(groups: SessionGroup[]): Pick<SessionCounts, 'sessions' | 'ended'> {
  const sum = (items: SessionGroup[]) => items.reduce((total, { sessions }) => total + sessions, 0)
  const ended = groups.filter(({ kind }) => kind === 'ended')
  return { ended: sum(ended), sessions: sum(groups) - sum(ended) }
}

/** Returns the earliest time of any session's newest decision; null without sessions. */
export async function findEarliestDecisionTime(
  db: Db,
  { organizationId, environment }: DataScope,
): Promise<number | null> {
  const { rows } = await db.query<{ first: number | null }>(
    `select min(s.evaluated_at)::float8 as first from read.sessions s where ${inScope}`,
    [organizationId, environment],
  )
  return rows[0]?.first ?? null
}

interface HourCount {
  hour: number
  sessions: number
  isRolledUp: boolean
}

/** Returns the number of sessions per hour, newest first. Omits hours without sessions. */
async function readHours(tx: Tx, scope: DataScope, range: TimeRange): Promise<HourCount[]> {
  const { rows } = await tx.query<HourCount>(
    `select slot.begins::float8 as hour, h.sessions is not null as "isRolledUp", coalesce(h.sessions, (
       select count(*) from read.sessions s where ${inScope}
         and s.evaluated_at >= slot.begins and s.evaluated_at < slot.begins + ${hourMs}::bigint))::float8 as sessions
     from (
       select greatest($3::bigint, min(s.evaluated_at)) as first, least($4::bigint - 1, max(s.evaluated_at)) as last
       from read.sessions s where ${inScope} having min(s.evaluated_at) is not null
     ) span
     cross join lateral generate_series(${hourStartSql('span.first')}, span.last, ${hourMs}::bigint) as slot (begins)
     left join read.session_hours h on h.organization_id = $1 and h.environment = $2 and h.hour = slot.begins
     order by slot.begins desc`,
    [scope.organizationId, scope.environment, range.since, range.until],
  )
  return rows.filter(({ sessions }) => sessions > 0)
}

interface PlannedSources extends TimeRange, CountSources {
  isPartial: boolean
  /** Upper bound of the number of sessions in the period. */
  maxSessions: number
  /** Number of sessions to read one by one. */
  rows: number
}

/** Divides the period between roll-ups and sessions. Omits the oldest hours if too many sessions would be read. */
function planSources(
  hours: HourCount[],
  { since, until }: TimeRange,
  query: CountQuery & Pick<CountSessions, 'usesRollUps' | 'maxRows'>,
): PlannedSources {
  const { usesRollUps = true, maxRows = maxRowsOf(query) } = query
  const canUseRollUps = usesRollUps && rollUpFieldFor(query) !== undefined
  const isReadFromRollUp = ({ hour, isRolledUp }: HourCount) =>
    canUseRollUps && isRolledUp && hour >= since && hour + hourMs <= until
  let total = 0
  const firstExcluded = hours.find((hour) => {
    total += isReadFromRollUp(hour) ? 0 : hour.sessions
    return total > maxRows
  })
  const isPartial = firstExcluded !== undefined
  const start = isPartial ? Math.max(since, firstExcluded.hour + hourMs) : since
  const included = hours.filter(({ hour }) => hour + hourMs > start)
  const rolledUp = included.filter(isReadFromRollUp).map(({ hour }) => hour)
  const maxSessions = included.reduce((sum, { sessions }) => sum + sessions, 0)
  const ranges = rangesBetween(rolledUp.toReversed(), { since: start, until })
  const rows = total - (firstExcluded?.sessions ?? 0)
  return { since: start, until, isPartial, maxSessions, rows, rolledUp, ranges }
}

// Returns the time ranges before, between and after the hours.
function rangesBetween(hours: number[], { since, until }: TimeRange): TimeRange[] {
  const starts = [since, ...hours.map((hour) => hour + hourMs)]
  const ends = [...hours, until]
  return starts
    .map((start, i) => ({ since: start, until: ends[i] ?? until }))
    .filter((range) => range.since < range.until)
}

const maxDistinct = { days: 7, sessions: 1_000_000 }

async function countDistinct(
  tx: Tx,
  scope: DataScope,
  query: Pick<CountSessions, 'countsDistinct'> & CountQuery & PlannedSources,
): Promise<Distinct> {
  const { filters, since, until, needsFacts } = query
  const reason = distinctMissing(query)
  if (reason) return { visitors: null, users: null, reason }
  const values: unknown[] = [scope.organizationId, scope.environment]
  const bind: Bind = (value) => `$${values.push(value)}`
  const where = (conditions: SessionFilters): string =>
    [inScope, ...conditionsOf(scope, conditions, bind)].join(' and ')
  // The index with visitors and users begins with the verdict.
  const period = { since, until, verdict: filters.verdict ?? verdictSchema.options }
  const decided = needsFacts ? ' and s.scoring_version is not null' : ''
  const matching = `read.sessions s where ${where({ ...filters, ...period })}${decided}`
  // No index has both visitors and the filtered columns. Joining two takes half the time of reading rows.
  const joinsIndexes = !hasUsableIndex(filters) && !readsRows(filters)
  const source = joinsIndexes
    ? `matching join read.sessions s using (session_id) where ${where(period)}`
    : matching
  const { rows } = await tx.query<{ visitors: number; users: number }>(
    `${joinsIndexes ? `with matching as materialized (select s.session_id from ${matching})` : ''}
     select count(distinct s.visitor_id)::float8 as visitors, count(distinct s.client_user_id)::float8 as users
     from ${source}`,
    values,
  )
  return { visitors: rows[0]?.visitors ?? 0, users: rows[0]?.users ?? 0, reason: null }
}

function distinctMissing({
  countsDistinct = true,
  since,
  until,
  maxSessions,
}: Pick<CountSessions, 'countsDistinct'> & PlannedSources): DistinctMissing | undefined {
  if (!countsDistinct) return 'not_requested'
  if (until - since > maxDistinct.days * intervals.day) return 'over_seven_days'
  return maxSessions > maxDistinct.sessions ? 'over_a_million_sessions' : undefined
}
