import type { Db } from '../../infra/postgres/pool.ts'
import { userTextId } from './apply-visitors.ts'
import type { SessionFacts } from './facts.ts'
import { type Bind, filterFields } from './filter-fields.ts'
import type { DataScope } from './scope.ts'
import { inScope, newestFirst } from './search.ts'

/** Filters of the session list that related sessions share. */
export const relatedFields = [
  ...(['visitor_id', 'client_user_id', 'ip'] as const),
  ...(['asn', 'page_path', 'attribution', 'agent_provider'] as const),
] as const
type RelatedField = (typeof relatedFields)[number]

export interface RelatedCount {
  field: RelatedField
  value: string
  /** `maxRelated` means that many or more. */
  sessions: number
  /** Start of the counted period, in epoch milliseconds. */
  since: number
}

export interface RelatedTo
  extends Pick<
    SessionFacts,
    'ip_address' | 'asn' | 'page_path' | 'attribution' | 'agent_provider'
  > {
  visitorId: string | null
  clientUserId: string | null
}

export const maxRelated = 1000
const dayMs = 86_400_000
// Bounds the sessions of the last day that are read, because no index finds these fields. Takes about 100 ms.
const maxRecent = 50_000

/**
 * Counts the sessions that share a value with the session, itself included. By visitor, user and address, which have
 * indexes, those of the last 30 days; by other fields, those of the last day among the newest `maxRecent`.
 */
export async function countRelated(
  db: Db,
  scope: DataScope,
  { session, now }: { session: RelatedTo; now: number },
): Promise<RelatedCount[]> {
  const [monthStart, dayStart] = [now - 30 * dayMs, now - dayMs]
  const values: unknown[] = [scope.organizationId, scope.environment]
  const bind: Bind = (value) => `$${values.push(value)}`
  const { indexed, recent } = conditionsByField(scope, session, bind)
  const month = bind(monthStart)
  const counts = indexed.map(
    ({ sql }) =>
      `(select count(*) from (select from read.sessions s where ${inScope} and s.evaluated_at >= ${month} and ${sql} limit ${maxRelated}) c)`,
  )
  const { rows } = await db.query<{ counts: number[]; since: number }>(
    `select array[${[...counts, ...recent.map(({ sql }) => `least(${maxRelated}, count(*) filter (where ${sql}))`)].join()}]::float8[] as counts,
       (case when count(*) < ${maxRecent} then ${bind(dayStart)}::bigint else min(s.evaluated_at) end)::float8 as since
     from (select * from read.sessions s where ${inScope} and s.evaluated_at >= ${bind(dayStart)}
       ${newestFirst} limit ${maxRecent}) s`,
    values,
  )
  const [{ counts: sessions, since } = { counts: [], since: dayStart }] = rows
  return [...indexed, ...recent].map(({ field, value }, i) => ({
    field,
    value,
    sessions: sessions[i] ?? 0,
    since: i < indexed.length ? monthStart : since,
  }))
}

interface FieldCondition {
  field: RelatedField
  value: string
  /** True for sessions `s` with the value. */
  sql: string
}

function conditionsByField(
  scope: DataScope,
  { visitorId, clientUserId, ip_address: ip, ...facts }: RelatedTo,
  bind: Bind,
): { indexed: FieldCondition[]; recent: FieldCondition[] } {
  const { asn, page_path: path, attribution, agent_provider: provider } = facts
  const tool = attribution?.find((label) => label.startsWith('tool:')) ?? null
  const condition = <Value extends string | number>(
    field: RelatedField,
    value: Value | null,
    matchesAny: (values: Value[], bind: Bind, scope: DataScope) => string,
  ) =>
    value === null ? [] : [{ field, value: String(value), sql: matchesAny([value], bind, scope) }]
  // The index of search texts finds addresses.
  const isOfAddress = ([address = '']: string[]) =>
    `s.address_text = ${bind(userTextId(scope, address))} and ${filterFields.ip.matchesAny([address], bind, scope)}`
  return {
    indexed: [
      ...condition('visitor_id', visitorId, filterFields.visitor_id.matchesAny),
      ...condition('client_user_id', clientUserId, filterFields.client_user_id.matchesAny),
      ...condition('ip', ip, isOfAddress),
    ],
    recent: [
      ...condition('asn', asn, filterFields.asn.matchesAny),
      ...condition('page_path', path, filterFields.page_path.matchesAny),
      ...condition('attribution', tool, filterFields.attribution.matchesAny),
      ...condition('agent_provider', provider, filterFields.agent_provider.matchesAny),
    ],
  }
}
