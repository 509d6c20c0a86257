import type { Db } from '../../infra/postgres/pool.ts'
import { type AuditRow, auditEntries } from './tables.ts'

export interface ListAudit {
  /** undefined = those of all organizations, and what is no organization's. */
  organizationId?: string | undefined
  /** Epoch milliseconds. */
  since?: number | undefined
  limit: number
  after?: { occurredAt: number; id: string } | undefined
}

/** Newest first. */
export async function listAudit(
  db: Db,
  { organizationId, since, limit, after }: ListAudit,
): Promise<{ rows: AuditRow[]; hasMore: boolean }> {
  const values: unknown[] = [limit + 1]
  const given = (value: unknown) => `$${values.push(value)}`
  const conditions = [
    ...(organizationId === undefined ? [] : [`e.organization_id = ${given(organizationId)}`]),
    ...(since === undefined ? [] : [`e.occurred_at >= ${given(since)}`]),
    ...(after ? [`(e.occurred_at, e.event_id) < (${given(after.occurredAt)}, ${given(after.id)})`] : []),
  ]
  const { rows } = await db.query<AuditRow>(
    `select ${auditEntries.select('e')} from read.audit_entries e
     where ${conditions.join(' and ') || 'true'}
     order by e.occurred_at desc, e.event_id desc limit $1`,
    values,
  )
  return { rows: rows.slice(0, limit), hasMore: rows.length > limit }
}
