import type { Db } from '../../infra/postgres/pool.ts'
import type { Environment } from '../../schemas/events.ts'
import { type AuditRow, auditEntries } from './tables.ts'

export interface ListAudit {
  /** undefined = all entries, including those without an organization. */
  organizationId?: string | undefined
  /** Environment of the caller's key; undefined = no key. A test key sees no live entries and no ids of live keys. */
  callerEnvironment?: Environment | undefined
  /** Epoch milliseconds. */
  since?: number | undefined
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
  { organizationId, callerEnvironment, since, limit, after }: ListAudit,
): Promise<{ rows: AuditRow[]; hasMore: boolean }> {
  const values: unknown[] = [limit + 1]
  const bind = (value: unknown) => `$${values.push(value)}`
  const conditions = [
    ...(organizationId === undefined ? [] : [`e.organization_id = ${bind(organizationId)}`]),
    ...(callerEnvironment === 'test' ? [`e.environment is distinct from 'live'`] : []),
    ...(since === undefined ? [] : [`e.occurred_at >= ${bind(since)}`]),
    ...(after
      ? [`(e.occurred_at, e.event_id) < (${bind(after.occurredAt)}, ${bind(after.id)})`]
      : []),
  ]
  const { rows } = await db.query<AuditRow>(
    `select ${auditEntries.selectWithout('e', 'actor_id')},
       ${callerEnvironment === 'test' ? testActorId : 'e.actor_id'} as actor_id
     from read.audit_entries e
     where ${conditions.join(' and ') || 'true'}
     order by e.occurred_at desc, e.event_id desc limit $1`,
    values,
  )
  return { rows: rows.slice(0, limit), hasMore: rows.length > limit }
}
