import type { Applied } from '../../infra/event-store/applied.ts'
import { catchUp, lastBefore } from '../../infra/event-store/catch-up.ts'
import type { EventLog } from '../../infra/log/port.ts'
import type { Db } from '../../infra/postgres/pool.ts'
import { within } from '../../infra/timing.ts'
import { auditProjection } from '../../projections/audit/projection.ts'
import { type ListAudit, listAudit } from '../../projections/audit/queries.ts'
import type { AuditRow } from '../../projections/audit/tables.ts'

export interface AuditDeps {
  readPool: Db
  log: Pick<EventLog, 'endPositions'>
  applied: Pick<Applied, 'waitFor'>
}

const waitMs = 1000

/** Newest first. What was caused before is in it, unless the log or the read model does not answer within a second. */
export async function readAuditLog(deps: AuditDeps, query: ListAudit) {
  await within(seeAll(deps), waitMs).catch(() => {})
  return listAudit(deps.readPool, query)
}

async function seeAll({ readPool, log, applied }: AuditDeps): Promise<void> {
  const { name: projection, topics } = auditProjection
  const ends = await Promise.all(topics.map((topic) => log.endPositions(topic)))
  await catchUp(readPool, {
    applied,
    projection,
    records: lastBefore(ends.flat()),
    timeoutMs: waitMs,
  })
}

export function auditJson({ id, type, occurred_at, environment, ...row }: AuditRow) {
  const { request_id, subject_id, reason } = row
  const actor = { type: row.actor_type, id: row.actor_id }
  const at = new Date(occurred_at).toISOString()
  return {
    object: 'audit_entry',
    id,
    type,
    occurred_at: at,
    environment,
    subject_id,
    reason,
    actor,
    request_id,
  }
}
