import type { Tx } from '../../infra/postgres/pool.ts'
import type { CountSources, TimeRange } from './count-groups.ts'
import { type Bind, filterFields } from './filter-fields.ts'
import { hourStartSql } from './hours.ts'
import type { DataScope } from './scope.ts'
import { inScope } from './search.ts'

/** Fields whose values are compared. Of the attributions, only tools are. */
export const watchedFields = [
  ...(['attribution', 'agent_provider', 'page_path', 'asn', 'country', 'signal'] as const),
]
type WatchedField = (typeof watchedFields)[number]

export interface WatchedValue {
  field: WatchedField
  value: string
}

interface HourCount {
  /** null counts all sessions. */
  field: WatchedField | null
  value: string
  hour: number
  sessions: number
  /** Sessions with the verdict `bot`. */
  bots: number
}

// SQL over a session `r` of the CTE `recent`.
const valueSql: Record<WatchedField, string> = {
  attribution: 'unnest(r.attribution)',
  agent_provider: 'r.agent_provider',
  page_path: 'r.page_path',
  asn: 'r.asn::text',
  country: 'r.country',
  signal: 'unnest(r.signals)',
}

// Entries of roll-ups. Each session has exactly one entry of `network`, so these count all sessions.
const rollUpEntriesSql = (field: WatchedField | 'network', columns: string, hours: string) =>
  `select '${field}' as field, ${columns} unnest(h.${field}) as entry, unnest(h.${field}_sessions) as sessions from ${hours}`

/** Counts the sessions by hour, in all and by value. Leaves out values with fewer than `minSessions` in all hours. */
export async function countWatchedValues(
  tx: Tx,
  scope: DataScope,
  { rolledUp, ranges, minSessions }: CountSources & { minSessions: number },
): Promise<HourCount[]> {
  const values: unknown[] = [scope.organizationId, scope.environment]
  const bind: Bind = (value) => `$${values.push(value)}`
  const recent = ranges.map(
    ({ since, until }) =>
      `select ${hourStartSql('s.evaluated_at')} as hour, left(s.verdict, 1) as initial, s.attribution, s.agent_provider, s.page_path, s.asn, s.country, s.signals
       from read.sessions s where ${inScope} and s.evaluated_at >= ${bind(since)} and s.evaluated_at < ${bind(until)}
         and s.scoring_version is not null`,
  )
  const hours = `read.session_hours h where h.organization_id = $1 and h.environment = $2
    and h.hour = any(${bind(rolledUp)}::bigint[])`
  const fromSessions = [
    `select 'network' as field, r.hour, r.initial || '-' as entry, count(*) as sessions from recent r group by 2, 3`,
    ...watchedFields.map(
      (field) =>
        `select '${field}', r.hour, r.initial || '=' || r.value, count(*)
         from (select r.hour, r.initial, ${valueSql[field]} as value from recent r) r where r.value is not null group by 2, 3`,
    ),
  ]
  const fromRollUps = [...watchedFields, 'network' as const].map((field) =>
    rollUpEntriesSql(field, 'h.hour,', hours),
  )
  const { rows } = await tx.query<HourCount>(
    `with ${recent.length > 0 ? `recent as materialized (${recent.join(' union all ')}),` : ''} entries as (
       ${[...fromRollUps, ...(recent.length > 0 ? fromSessions : [])].join(' union all ')}
     ), counted as (
       select nullif(field, 'network') as field, case when field = 'network' then '' else substr(entry, 3) end as value, hour,
         sum(sessions) as sessions, coalesce(sum(sessions) filter (where entry like 'b%'), 0) as bots
       from entries
       where substr(entry, 2, 1) = '=' or field = 'network' and substr(entry, 2, 1) <> '!' group by 1, 2, 3
     )
     select field, value, hour::float8 as hour, sessions::float8 as sessions, bots::float8 as bots
     from (select *, sum(sessions) over (partition by field, value) as total from counted) c
     where field is null or total >= ${bind(minSessions)} and (field <> 'attribution' or value like 'tool:%')`,
    values,
  )
  return rows
}

/** Hour of the baseline, with the share of it that is compared, from 0 to 1. */
export interface BaselineHour {
  hour: number
  weight: number
  /** Index of the hour in the current period that it is compared with. */
  slot: number
  day: number
}

interface BaselineCount {
  /** null counts all sessions. */
  field: WatchedField | null
  value: string
  /** null counts all hours of a day. */
  slot: number | null
  sessions: number
  /** Sessions of the busiest hour. */
  busiest: number
}

/** Counts the sessions of past hours that are rolled up, in all and by value: by slot and by day. */
export async function countBaseline(
  tx: Tx,
  { organizationId, environment }: DataScope,
  hours: readonly BaselineHour[],
  watched: readonly WatchedValue[],
): Promise<BaselineCount[]> {
  const values: unknown[] = [organizationId, environment]
  const bind: Bind = (value) => `$${values.push(value)}`
  const [starts, weights, slots, days] = [
    bind(hours.map(({ hour }) => hour)),
    bind(hours.map(({ weight }) => weight)),
    bind(hours.map(({ slot }) => slot)),
    bind(hours.map(({ day }) => day)),
  ]
  const columns = 'h.day, h.slot, h.weight,'
  const fields = watchedFields.filter((field) => watched.some((value) => value.field === field))
  const branches = fields.map((field) => {
    const entries = watched
      .filter((value) => value.field === field)
      .flatMap(({ value }) => ['b', 'h', 'i'].map((initial) => `${initial}=${value}`))
    return `select * from (${rollUpEntriesSql(field, columns, 'hours h')}) e
      where entry = any(${bind(entries)}::text[])`
  })
  const { rows } = await tx.query<BaselineCount>(
    `with hours as (
       select t.*, h.* from unnest(${starts}::bigint[], ${weights}::float8[], ${slots}::integer[], ${days}::integer[]) as t (begins, weight, slot, day)
       join read.session_hours h on h.organization_id = $1 and h.environment = $2 and h.hour = t.begins and h.sessions is not null
     ), entries as (
       select null as field, day, slot, weight, '' as value, sessions
       from (${rollUpEntriesSql('network', columns, 'hours h')}) e where substr(entry, 2, 1) <> '!'
       ${branches.map((branch) => `union all select field, day, slot, weight, substr(entry, 3), sessions from (${branch}) b`).join(' ')}
     ), hourly as (
       select field, value, day, slot, sum(sessions * weight) as sessions from entries group by 1, 2, 3, 4
     )
     select field, value, slot, sum(sessions) as sessions, max(sessions) as busiest
     from hourly group by grouping sets ((field, value, slot), (field, value, day))`,
    values,
  )
  return rows
}

/** Length of the intervals that matches are counted by, in milliseconds. */
export const matchIntervalMs = 300_000

/** Sessions that have the same ones of the watched values, by interval or by path. */
export interface MatchCount {
  /** Start of the interval; null if counted by path. */
  at: number | null
  /** Time of the earliest session. */
  first: number
  path: string | null
  /** Indexes of the watched values. */
  matched: number[]
  sessions: number
}

/** Counts the sessions with any of the values, at most 30 and each in its time range, by the ones that they have. */
export async function countMatches(
  tx: Tx,
  scope: DataScope,
  watched: readonly (WatchedValue & TimeRange)[],
): Promise<MatchCount[]> {
  const values: unknown[] = [scope.organizationId, scope.environment]
  const bind: Bind = (value) => `$${values.push(value)}`
  const inRange = ({ since, until }: TimeRange) =>
    `s.evaluated_at >= ${bind(since)} and s.evaluated_at < ${bind(until)}`
  const bits = watched.map(
    (value, i) =>
      `case when ${inRange(value)} and ${conditionOn(value, bind, scope)} then ${2 ** i} else 0 end`,
  )
  const period = {
    since: Math.min(...watched.map(({ since }) => since)),
    until: Math.max(...watched.map(({ until }) => until)),
  }
  const { rows } = await tx.query<Omit<MatchCount, 'matched'> & { mask: number }>(
    `select at::float8 as at, page_path as path, mask, count(*)::float8 as sessions, min(evaluated_at)::float8 as first
     from (
       select s.evaluated_at, s.evaluated_at - s.evaluated_at % ${matchIntervalMs} as at, s.page_path, ${bits.join(' | ')} as mask
       from read.sessions s where ${inScope} and s.scoring_version is not null and ${inRange(period)} offset 0
     ) m where mask > 0 group by grouping sets ((mask, at), (mask, page_path))`,
    values,
  )
  return rows.map(({ mask, ...count }) => ({
    ...count,
    matched: watched.flatMap((_, i) => ((mask >> i) & 1 ? [i] : [])),
  }))
}

function conditionOn({ field, value }: WatchedValue, bind: Bind, scope: DataScope): string {
  if (field === 'asn') return filterFields.asn.matchesAny([Number(value)], bind, scope)
  return filterFields[field].matchesAny([value], bind, scope)
}
