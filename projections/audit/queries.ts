import type { Db } from '../../infra/postgres/pool.ts'
import type { Environment } from '../../schemas/events.ts'
import { type AuditRow, auditEntries } from './tables.ts'

export interface ListAudit {
  /** undefined = those of all organizations, and what is no organization's. */
  organizationId?: string | undefined
  /** The environment of the key that reads. A test key reads nothing of the live environment, and no id of a live key. Absent = all. */
  reader?: Environment | undefined
  /** Epoch milliseconds. */
  since?: number | undefined
  limit: number
  after?: { occurredAt: number; id: string } | undefined
}

/** What a test key reads instead of the id of a live key. */
const liveKey = 'live'

const testActorId = `case when e.actor_type = 'key' and exists (
    select from read.api_keys k where k.key_id = e.actor_id and k.environment = 'live'
  ) then '${liveKey}' else e.actor_id end`

/** Newest first. */
export async function listAudit(
  db: Db,
  { organizationId, reader, since, limit, after }: ListAudit,
): Promise<{ rows: AuditRow[]; hasMore: boolean }> {
  const values: unknown[] = [limit + 1]
  const place = (value: unknown) => `$${values.push(value)}`
  const conditions = [
    ...(organizationId === undefined ? [] : [`e.organization_id = ${place(organizationId)}`]),
    ...(reader === 'test' ? [`e.environment is distinct from 'live'`] : []),
    ...(since === undefined ? [] : [`e.occurred_at >= ${place(since)}`]),
    ...(after
      ? [`(e.occurred_at, e.event_id) < (${place(after.occurredAt)}, ${place(after.id)})`]
      : []),
  ]
  const { rows } = await db.query<AuditRow>(
    `select ${auditEntries.selectWithout('e', 'actor_id')},
       ${reader === 'test' ? testActorId : 'e.actor_id'} as actor_id
     from read.audit_entries e
     where ${conditions.join(' and ') || 'true'}
     order by e.occurred_at desc, e.event_id desc limit $1`,
    values,
  )
  return { rows: rows.slice(0, limit), hasMore: rows.length > limit }
}
