import type pg from 'pg'
import { type Db, type Tx, transaction } from '../../infra/postgres/pool.ts'
import {
  type Counting,
  countGroups,
  intervals,
  isFact,
  rolledBy,
  type SessionGroup,
  type Sources,
  type Span,
} from './count-groups.ts'
import type { Bind } from './filter-fields.ts'
import { conditionsOf, hasFacts, needsRows, type SessionFilters, signalWeight } from './filters.ts'
import { hourMs, hourOf } from './hours.ts'
import type { DataScope } from './scope.ts'
import { inScope } from './search.ts'

export interface CountSessions extends Omit<Counting, 'asksFacts'> {
  filters: SessionFilters & Span
  /** Default: hours are read as they were rolled up where that is enough. */
  usesHours?: boolean
  maxRows?: number
}

export interface SessionCounts {
  /** From when to when sessions were counted. */
  since: number
  until: number
  /** Only the newest ones were counted, since there are too many to read. */
  isPart: boolean
  sessions: number
  /** Those of which filters or groups ask what has ended. They are not among `sessions`. */
  ended: number
  distinct: Distinct
  groups: SessionGroup[]
}

type Distinct =
  | { visitors: number; users: number; reason: null }
  | { visitors: null; users: null; reason: 'over_seven_days' | 'over_a_million_sessions' }

const maxUnits = 40

/** Returns how many rows can be read within the time that a statement has. They cost `maxUnits`. */
function maxRowsOf({ filters, groupBy }: Counting): number {
  const fields = groupBy.filter((field) => field !== 'verdict')
  const isList = fields.includes('signal') || fields.includes('attribution')
  // Signals and persons are not in the index, and two fields together have many groups.
  const isGrouped = isList || fields.length > 1 || needsRows(filters)
  // A session is in as many groups as it has signals.
  const rows = isList && fields.length > 1 ? 20_000 : isGrouped ? 400_000 : 2_000_000
  return Math.floor(rows / signalWeight(filters))
}

/** Runs `work` in a transaction in which all numbers are of one moment. */
export function inSnapshot<T>(pool: pg.Pool, work: (tx: Tx) => Promise<T>): Promise<T> {
  return transaction(pool, async (tx) => {
    await tx.query('set transaction isolation level repeatable read, read only')
    return work(tx)
  })
}

interface Plan {
  counting: CountSessions & Counting
  place: Place
  /** Price of the sessions that are read one by one. */
  units: number
}

export async function planCount(tx: Tx, scope: DataScope, query: CountSessions): Promise<Plan> {
  const { since, until } = query.filters
  const counting = { ...query, asksFacts: hasFacts(query.filters) || query.groupBy.some(isFact) }
  const hours = since < until ? await readHours(tx, scope, { since, until }) : []
  const place = placeOf(hours, { since, until }, counting)
  return { counting, place, units: Math.ceil((maxUnits * place.rows) / maxRowsOf(counting)) }
}

export const countSessions = (pool: pg.Pool, scope: DataScope, query: CountSessions) =>
  inSnapshot(pool, async (tx) => countPlanned(tx, scope, await planCount(tx, scope, query)))

export async function countPlanned(
  tx: Tx,
  scope: DataScope,
  { counting, place }: Plan,
): Promise<SessionCounts> {
  const { since, until, isPart } = place
  if (since >= until) return { ...nothing, since, until }
  const groups = await countGroups(tx, scope, { ...counting, ...place })
  // A session counts under each of its signals, so the groups are no sum of sessions.
  const isList = counting.groupBy.some((field) => field === 'signal' || field === 'attribution')
  const whole = { ...counting, ...place, groupBy: [], interval: 'none' } as const
  const all = isList ? await countGroups(tx, scope, whole) : groups
  const distinct = await countDistinct(tx, scope, whole)
  return { since, until, isPart, ...sums(all), distinct, groups }
}

const nothing: Omit<SessionCounts, 'since' | 'until'> = {
  isPart: false,
  sessions: 0,
  ended: 0,
  groups: [],
  distinct: { visitors: 0, users: 0, reason: null },
}

function sums(groups: SessionGroup[]): Pick<SessionCounts, 'sessions' | 'ended'> {
  const sum = (some: SessionGroup[]) => some.reduce((total, { sessions }) => total + sessions, 0)
  const ended = groups.filter(({ kind }) => kind === 'ended')
  return { ended: sum(ended), sessions: sum(groups) - sum(ended) }
}

/** When the oldest decision was. */
export async function firstSession(
  db: Db,
  { organizationId, environment }: DataScope,
): Promise<number | null> {
  const { rows } = await db.query<{ first: number | null }>(
    `select min(s.evaluated_at)::float8 as first from read.sessions s where ${inScope}`,
    [organizationId, environment],
  )
  return rows[0]?.first ?? null
}

interface HourRead {
  hour: number
  sessions: number
  isRolledUp: boolean
}

/** Returns the number of sessions of each hour that has any, newest first. Looks only between the first and last session. */
async function readHours(tx: Tx, scope: DataScope, { since, until }: Span): Promise<HourRead[]> {
  const { rows } = await tx.query<HourRead>(
    `select one.begins::float8 as hour, h.sessions is not null as "isRolledUp", coalesce(h.sessions, (
       select count(*) from read.sessions s where ${inScope}
         and s.evaluated_at >= one.begins and s.evaluated_at < one.begins + ${hourMs}::bigint))::float8 as sessions
     from (
       select greatest($3::bigint, min(s.evaluated_at)) as first, least($4::bigint - 1, max(s.evaluated_at)) as last
       from read.sessions s where ${inScope} having min(s.evaluated_at) is not null
     ) span
     cross join lateral generate_series(${hourOf('span.first')}, span.last, ${hourMs}::bigint) as one (begins)
     left join read.session_hours h on h.organization_id = $1 and h.environment = $2 and h.hour = one.begins
     order by one.begins desc`,
    [scope.organizationId, scope.environment, since, until],
  )
  return rows.filter(({ sessions }) => sessions > 0)
}

interface Place extends Span, Sources {
  isPart: boolean
  /** How many sessions there are within all of it, at most. */
  atMost: number
  /** Sessions that are read one by one. */
  rows: number
}

/** What is read of roll-ups and what of sessions. Where that would be too many, only the newest hours are. */
function placeOf(
  hours: HourRead[],
  { since, until }: Span,
  counting: Counting & Pick<CountSessions, 'usesHours' | 'maxRows'>,
): Place {
  const { usesHours = true, maxRows = maxRowsOf(counting) } = counting
  const isRolled = usesHours && rolledBy(counting) !== undefined
  const readsHour = ({ hour, isRolledUp }: HourRead) =>
    isRolled && isRolledUp && hour >= since && hour + hourMs <= until
  let sum = 0
  const cut = hours.find((one) => {
    sum += readsHour(one) ? 0 : one.sessions
    return sum > maxRows
  })
  const from = cut ? Math.max(since, cut.hour + hourMs) : since
  const within = hours.filter(({ hour }) => hour + hourMs > from)
  const rolledUp = within.filter(readsHour).map(({ hour }) => hour)
  const atMost = within.reduce((sum, { sessions }) => sum + sessions, 0)
  const ranges = rangesBetween(rolledUp.toReversed(), { since: from, until })
  const rows = sum - (cut?.sessions ?? 0)
  return { since: from, until, isPart: cut !== undefined, atMost, rows, rolledUp, ranges }
}

// Before the first hour, between hours that do not follow each other, and behind the last.
function rangesBetween(hours: number[], { since, until }: Span): Span[] {
  const begins = [since, ...hours.map((hour) => hour + hourMs)]
  const ends = [...hours, until]
  return begins
    .map((begin, place) => ({ since: begin, until: ends[place] ?? until }))
    .filter((one) => one.since < one.until)
}

const maxDistinct = { days: 7, sessions: 1_000_000 }

async function countDistinct(
  tx: Tx,
  scope: DataScope,
  { filters, since, until, atMost, asksFacts }: Counting & Place,
): Promise<Distinct> {
  if (until - since > maxDistinct.days * intervals.day)
    return { visitors: null, users: null, reason: 'over_seven_days' }
  if (atMost > maxDistinct.sessions)
    return { visitors: null, users: null, reason: 'over_a_million_sessions' }
  const values: unknown[] = [scope.organizationId, scope.environment]
  const bind: Bind = (value) => `$${values.push(value)}`
  const conditions = conditionsOf(scope, { ...filters, since, until }, bind)
  if (asksFacts) conditions.push('s.scoring_version is not null')
  const { rows } = await tx.query<{ visitors: number; users: number }>(
    `select count(distinct s.visitor_id)::float8 as visitors, count(distinct s.client_user_id)::float8 as users
     from read.sessions s where ${[inScope, ...conditions].join(' and ')}`,
    values,
  )
  return { visitors: rows[0]?.visitors ?? 0, users: rows[0]?.users ?? 0, reason: null }
}
