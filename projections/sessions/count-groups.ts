import type { Tx } from '../../infra/postgres/pool.ts'
import { keysOf } from '../../infra/postgres/table.ts'
import { type Bind, filterFields } from './filter-fields.ts'
import { factConditions, isNarrow, lastingConditions, type SessionFilters } from './filters.ts'
import { hourMs, type RolledField, rolledFields } from './hours.ts'
import type { DataScope } from './scope.ts'
import { inScope } from './search.ts'

/** Milliseconds. */
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
  key_id: 's.key_id',
  browser: 's.browser',
  os: 's.os',
  handed_off: '(s.handed_off_at is not null)',
  mark: `coalesce(s.mark, 'none')`,
  agent_status: 's.agent_status',
  agent_provider: 's.agent_provider',
} as const

/** What sessions are counted by. No field names a person. */
export type GroupField = keyof typeof groupSql
export const groupFields = keysOf(groupSql)

export const isFact = (field: GroupField): boolean =>
  field === 'handed_off' || !filterFields[field].isLasting

export interface Span {
  since: number
  until: number
}

export interface Counting {
  filters: SessionFilters
  interval: Interval
  groupBy: readonly GroupField[]
  /** How many groups are counted by themselves; the others are one. */
  top: number
  /** Whether filters or groups are of what is gone where decisions have ended. */
  asksFacts: boolean
}

/** Where the numbers are read. */
export interface Sources {
  /** Hours as they were rolled up. */
  rolledUp: number[]
  /** The times between them, of which sessions are read one by one. */
  ranges: Span[]
}

export interface SessionGroup {
  /** When its interval begins; null without intervals. */
  at: number | null
  kind: 'value' | 'other' | 'ended'
  /** Of each field that is counted by; null where the session has none. */
  values: (string | null)[]
  sessions: number
}

/** In the order of intervals, the largest groups first. */
export async function countGroups(
  tx: Tx,
  scope: DataScope,
  counting: Counting & Sources,
): Promise<SessionGroup[]> {
  const values: unknown[] = [scope.organizationId, scope.environment]
  const bind: Bind = (value) => `$${values.push(value)}`
  const field = rolledBy(counting)
  const hours = field && counting.rolledUp.length > 0 ? [fromHours(counting, field, bind)] : []
  const parts = counting.ranges.length > 0 ? [...hours, fromSessions(scope, counting, bind)] : hours
  if (parts.length === 0) return []
  const { rows } = await tx.query<SessionGroup>(
    `with counted as (
       select at, ended, one, two, sum(sessions) as sessions from (${parts.join(' union all ')}) part group by 1, 2, 3, 4
     ), summed as (
       select *, sum(sessions) over (partition by ended, one, two) as of_group from counted
     ), ranked as (
       select *, dense_rank() over (order by ended, of_group desc, one collate "C", two collate "C") as place from summed
     ), named as (
       select at, case when ended then 'ended' when place > ${bind(counting.top)}::bigint then 'other' else 'value' end as kind,
         one, two, place, sessions from ranked
     )
     select at::float8 as at, kind, sum(sessions)::float8 as sessions,
       case when kind = 'value' then (array[one, two])[1:${counting.groupBy.length}] else '{}' end as values
     from named group by at, kind, case when kind = 'value' then place end, 4
     order by at, kind = 'ended', kind = 'other', min(place)`,
    values,
  )
  return rows
}

/** The field of the roll-ups that says it all; undefined = sessions must be read. */
export function rolledBy({
  filters,
  interval,
  groupBy,
  asksFacts,
}: Omit<Counting, 'top'>): RolledField | undefined {
  if (isNarrow(filters) || interval === 'minute') return undefined
  const fields = groupBy.filter((field) => field !== 'verdict')
  if (fields.length > 1) return undefined
  return fields.length === 0
    ? asksFacts
      ? 'network'
      : 'key_id'
    : rolledFields.find((one) => one === fields[0])
}

function fromHours(
  { filters, interval, groupBy, rolledUp }: Counting & Sources,
  field: RolledField,
  bind: Bind,
) {
  const letter = 'left(e.entry, 1)'
  const value = `case when substr(e.entry, 2, 1) = '=' then substr(e.entry, 3) end`
  const verdict = `case ${letter} when 'b' then 'bot' when 'h' then 'human' else 'inconclusive' end`
  const [one, two] = groupBy.map((group) => (group === 'verdict' ? verdict : value))
  const ofVerdicts =
    filters.verdict &&
    `where ${letter} = any(${bind(filters.verdict.map((name) => name[0]))}::text[])`
  // Entries are read once each, since the same ones are in many hours. Unnested in the list of columns they take half as
  // long as joined.
  return `select at, substr(e.entry, 2, 1) = '!' as ended, ${one ?? 'null'} as one, ${two ?? 'null'} as two, sessions
    from (
      select at, e.entry, sum(e.sessions) as sessions from (
        select ${beginning('h.hour', interval)} as at, unnest(h.${field}) as entry, unnest(h.${field}_sessions) as sessions
        from read.session_hours h
        where h.organization_id = $1 and h.environment = $2 and h.hour = any(${bind(rolledUp)}::bigint[])
      ) e ${ofVerdicts ?? ''} group by 1, 2
    ) e`
}

// Sessions whose facts have ended can meet no condition on these, and are counted by themselves.
function fromSessions(scope: DataScope, counting: Counting & Sources, bind: Bind): string {
  const { filters, interval, groupBy, asksFacts, ranges } = counting
  const facts = factConditions(scope, filters, bind)
  const conditions = [
    ...lastingConditions(scope, filters, bind),
    ...(facts.length > 0 ? [`(s.scoring_version is null or (${facts.join(' and ')}))`] : []),
  ]
  const [one, two] = groupBy.map((field) => groupSql[field])
  return `select at, ended, one::text, two::text, sessions from (
      select ${beginning('s.evaluated_at', interval)} as at,
        ${asksFacts ? 's.scoring_version is null' : 'false'} as ended,
        ${one ?? 'null::text'} as one, ${two ?? 'null::text'} as two, count(*) as sessions
      from ${sessionsIn(ranges, bind)} ${groupBy.map(unnesting).join(' ')}
      ${conditions.length > 0 ? `where ${conditions.join(' and ')}` : ''} group by 1, 2, 3, 4
    ) read_now`
}

// With more ranges than these the statement would be as long as its plan takes.
const fewRanges = 20

function sessionsIn(ranges: Span[], bind: Bind): string {
  const within = (since: string, until: string) =>
    `select * from read.sessions s where ${inScope} and s.evaluated_at >= ${since} and s.evaluated_at < ${until}`
  // With its own times each range has its own plan, by how many sessions it has.
  if (ranges.length <= fewRanges)
    return `(${ranges.map(({ since, until }) => within(bind(since), bind(until))).join(' union all ')}) s`
  // Their rows are looked for by each range, which the offset holds the planner to.
  const begins = bind(ranges.map(({ since }) => since))
  const ends = bind(ranges.map(({ until }) => until))
  return `unnest(${begins}::bigint[], ${ends}::bigint[]) as span (since, until)
    cross join lateral (${within('span.since', 'span.until')} offset 0) s`
}

const arrays: Partial<Record<GroupField, string>> = {
  signal: 's.signals',
  attribution: 's.attribution',
}

function unnesting(field: GroupField): string {
  const array = arrays[field]
  return array ? `left join lateral unnest(${array}) as ${field} (value) on true` : ''
}

function beginning(at: string, interval: Interval): string {
  const length = intervals[interval]
  return length === null ? 'null::bigint' : `${at} - ${at} % ${length}`
}
