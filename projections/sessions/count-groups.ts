import type { Tx } from '../../infra/postgres/pool.ts'
import { keysOf } from '../../infra/postgres/table.ts'
import { type Bind, filterFields } from './filter-fields.ts'
import {
  factConditions,
  hasExtraFilters,
  lastingConditions,
  type SessionFilters,
} from './filters.ts'
import { hourMs, type RollUpField, rollUpFields } from './hours.ts'
import type { DataScope } from './scope.ts'
import { inScope } from './search.ts'

/** Milliseconds by name. */
export const intervals = { minute: 60_000, hour: hourMs, day: 24 * hourMs, none: null } as const
export type Interval = keyof typeof intervals

// SQL over the session `s` and its unnested arrays.
const groupSql = {
  verdict: 's.verdict',
  signal: 'signal.value',
  attribution: 'attribution.value',
  country: 's.country',
  asn: 's.asn',
  network: 's.network',
  page_host: 's.page_host',
  page_path: 's.page_path',
  key_id: 's.key_id',
  browser: 's.browser',
  os: 's.os',
  handed_off: '(s.handed_off_at is not null)',
  mark: `coalesce(s.mark, 'none')`,
  agent_status: 's.agent_status',
  agent_provider: 's.agent_provider',
} as const

/** Fields to group by. They exclude fields that identify a person. */
export type GroupField = keyof typeof groupSql
export const groupFields = keysOf(groupSql)

/** Returns true if the field is deleted when the session's decisions expire. */
export const isFactField = (field: GroupField): boolean =>
  field === 'handed_off' || !filterFields[field].survivesExpiry

export interface TimeRange {
  since: number
  until: number
}

/** Query that is counted from hourly roll-ups where these suffice, otherwise from sessions. */
export interface CountQuery {
  filters: SessionFilters
  interval: Interval
  groupBy: readonly GroupField[]
  /** Number of groups to return. Smaller groups are merged into `other`. */
  top: number
  /** True if a filter or group field is deleted when decisions expire. */
  needsFacts: boolean
}

export interface CountSources {
  /** Hours that are read from roll-ups. */
  rolledUp: number[]
  /** Remaining time ranges, whose sessions are read one by one. */
  ranges: TimeRange[]
}

export interface SessionGroup {
  /** Start of the interval; null without intervals. */
  at: number | null
  kind: 'value' | 'other' | 'ended'
  /** Values of the `groupBy` fields; null where sessions have none. */
  values: (string | null)[]
  sessions: number
}

/** Returns the groups by interval, then by size, largest first. */
export async function countGroups(
  tx: Tx,
  scope: DataScope,
  query: CountQuery & CountSources,
): Promise<SessionGroup[]> {
  const values: unknown[] = [scope.organizationId, scope.environment]
  const bind: Bind = (value) => `$${values.push(value)}`
  const field = rollUpFieldFor(query)
  const counts: string[] = []
  if (field && query.rolledUp.length > 0) counts.push(countRollUpsSql(query, field, bind))
  if (query.ranges.length > 0) counts.push(countSessionsSql(scope, query, bind))
  if (counts.length === 0) return []
  const { rows } = await tx.query<SessionGroup>(
    `with counted as (
       select at, ended, value1, value2, sum(sessions) as sessions
       from (${counts.join(' union all ')}) source group by 1, 2, 3, 4
     ), totaled as (
       select *, sum(sessions) over (partition by ended, value1, value2) as total from counted
     ), ranked as (
       select *, dense_rank() over (order by ended, total desc, value1 collate "C", value2 collate "C") as size_rank
       from totaled
     ), classified as (
       select *, case when ended then 'ended' when size_rank > ${bind(query.top)}::bigint then 'other' else 'value' end as kind
       from ranked
     )
     select at::float8 as at, kind, sum(sessions)::float8 as sessions,
       case when kind = 'value' then (array[value1, value2])[1:${query.groupBy.length}] else '{}' end as values
     from classified group by at, kind, case when kind = 'value' then size_rank end, 4
     order by at, kind = 'ended', kind = 'other', min(size_rank)`,
    values,
  )
  return rows
}

/** Returns the roll-up field that can count the sessions of the query; undefined if sessions must be read. */
export function rollUpFieldFor({
  filters,
  interval,
  groupBy,
  needsFacts,
}: Omit<CountQuery, 'top'>): RollUpField | undefined {
  if (hasExtraFilters(filters) || interval === 'minute') return undefined
  const fields = groupBy.filter((field) => field !== 'verdict')
  if (fields.length > 1) return undefined
  // Without a group field, any roll-up field will do. `network` also separates sessions whose facts have expired.
  return fields.length === 0
    ? needsFacts
      ? 'network'
      : 'key_id'
    : rollUpFields.find((name) => name === fields[0])
}

function countRollUpsSql(
  { filters, interval, groupBy, rolledUp }: CountQuery & CountSources,
  field: RollUpField,
  bind: Bind,
) {
  const initial = 'left(e.entry, 1)'
  const value = `case when substr(e.entry, 2, 1) = '=' then substr(e.entry, 3) end`
  const verdict = `case ${initial} when 'b' then 'bot' when 'h' then 'human' else 'inconclusive' end`
  const [value1, value2] = groupBy.map((group) => (group === 'verdict' ? verdict : value))
  const verdictFilter =
    filters.verdict &&
    `where ${initial} = any(${bind(filters.verdict.map((name) => name[0]))}::text[])`
  // Sums equal entries across hours before parsing them. Unnesting in the select list is twice as fast as a join.
  return `select at, substr(e.entry, 2, 1) = '!' as ended, ${value1 ?? 'null'} as value1, ${value2 ?? 'null'} as value2, sessions
    from (
      select at, e.entry, sum(e.sessions) as sessions from (
        select ${intervalStart('h.hour', interval)} as at, unnest(h.${field}) as entry, unnest(h.${field}_sessions) as sessions
        from read.session_hours h
        where h.organization_id = $1 and h.environment = $2 and h.hour = any(${bind(rolledUp)}::bigint[])
      ) e ${verdictFilter ?? ''} group by 1, 2
    ) e`
}

// Sessions whose facts have expired cannot match conditions on facts, so they are counted separately as `ended`.
function countSessionsSql(scope: DataScope, query: CountQuery & CountSources, bind: Bind): string {
  const { filters, interval, groupBy, needsFacts, ranges } = query
  const facts = factConditions(scope, filters, bind)
  const conditions = [
    ...lastingConditions(scope, filters, bind),
    ...(facts.length > 0 ? [`(s.scoring_version is null or (${facts.join(' and ')}))`] : []),
  ]
  const [value1, value2] = groupBy.map((field) => groupSql[field])
  return `select at, ended, value1::text, value2::text, sessions from (
      select ${intervalStart('s.evaluated_at', interval)} as at,
        ${needsFacts ? 's.scoring_version is null' : 'false'} as ended,
        ${value1 ?? 'null::text'} as value1, ${value2 ?? 'null::text'} as value2, count(*) as sessions
      from ${sessionsIn(ranges, bind)} ${groupBy.map(unnestSql).join(' ')}
      ${conditions.length > 0 ? `where ${conditions.join(' and ')}` : ''} group by 1, 2, 3, 4
    ) counts`
}

// Planning a union of more ranges takes too long.
const maxUnionRanges = 20

function sessionsIn(ranges: TimeRange[], bind: Bind): string {
  const selectRange = (since: string, until: string) =>
    `select * from read.sessions s where ${inScope} and s.evaluated_at >= ${since} and s.evaluated_at < ${until}`
  // In a union, each range gets a plan that suits its number of sessions.
  if (ranges.length <= maxUnionRanges)
    return `(${ranges.map(({ since, until }) => selectRange(bind(since), bind(until))).join(' union all ')}) s`
  // `offset 0` keeps the planner from flattening the join, so that the index is scanned once per range.
  const starts = bind(ranges.map(({ since }) => since))
  const ends = bind(ranges.map(({ until }) => until))
  return `unnest(${starts}::bigint[], ${ends}::bigint[]) as span (since, until)
    cross join lateral (${selectRange('span.since', 'span.until')} offset 0) s`
}

const arrayColumns: Partial<Record<GroupField, string>> = {
  signal: 's.signals',
  attribution: 's.attribution',
}

function unnestSql(field: GroupField): string {
  const array = arrayColumns[field]
  return array ? `left join lateral unnest(${array}) as ${field} (value) on true` : ''
}

function intervalStart(at: string, interval: Interval): string {
  const length = intervals[interval]
  return length === null ? 'null::bigint' : `${at} - ${at} % ${length}`
}
