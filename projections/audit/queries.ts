import type { Db } from '../../infra/postgres/pool.ts'
import type { ActorType, CausedName, Environment } from '../../schemas/events.ts'
import { type AuditRow, auditEntries } from './tables.ts'

/** Undefined members match every entry. */
interface AuditFilters {
  types?: CausedName[] | undefined
  actorTypes?: ActorType[] | undefined
  /** As shown to the caller: `live` matches all live keys for a test key. */
  actorId?: string | undefined
  subjectId?: string | undefined
  /** Epoch milliseconds, inclusive. */
  since?: number | undefined
  /** Epoch milliseconds, exclusive. */
  until?: number | undefined
}

export interface ListAudit extends AuditFilters {
  /** undefined = all entries, including those without an organization. */
  organizationId?: string | undefined
  /** Environment of the caller's key; undefined = no key. A test key sees no live entries and no ids of live keys. */
  callerEnvironment?: Environment | undefined
  limit: number
  after?: { occurredAt: number; id: string } | undefined
}

// Shown to test keys instead of a live key's id.
const liveKey = 'live'

const testActorId = `case when e.actor_type = 'key' and exists (
    select from read.api_keys k where k.key_id = e.actor_id and k.environment = 'live'
  ) then '${liveKey}' else e.actor_id end`

/** Lists entries, newest first. */
export async function listAudit(
  db: Db,
  { organizationId, callerEnvironment, limit, after, ...filters }: ListAudit,
): Promise<{ rows: AuditRow[]; hasMore: boolean }> {
  const values: unknown[] = [limit + 1]
  const bind = (value: unknown) => `$${values.push(value)}`
  const { types, actorTypes, actorId, subjectId, since, until } = filters
  const shownActorId = callerEnvironment === 'test' ? testActorId : 'e.actor_id'
  const conditions = [
    ...(organizationId === undefined ? [] : [`e.organization_id = ${bind(organizationId)}`]),
    ...(callerEnvironment === 'test' ? [`e.environment is distinct from 'live'`] : []),
    ...(types ? [`e.type = any(${bind(types)})`] : []),
    ...(actorTypes ? [`e.actor_type = any(${bind(actorTypes)})`] : []),
    ...(actorId === undefined ? [] : [`${shownActorId} = ${bind(actorId)}`]),
    ...(subjectId === undefined ? [] : [`e.subject_id = ${bind(subjectId)}`]),
    ...(since === undefined ? [] : [`e.occurred_at >= ${bind(since)}`]),
    ...(until === undefined ? [] : [`e.occurred_at < ${bind(until)}`]),
    ...(after
      ? [`(e.occurred_at, e.event_id) < (${bind(after.occurredAt)}, ${bind(after.id)})`]
      : []),
  ]
  const { rows } = await db.query<AuditRow>(
    `select ${auditEntries.selectWithout('e', 'actor_id')},
       ${shownActorId} as actor_id
     from read.audit_entries e
     where ${conditions.join(' and ') || 'true'}
     order by e.occurred_at desc, e.event_id desc limit $1`,
    values,
  )
  return { rows: rows.slice(0, limit), hasMore: rows.length > limit }
}
