import type { AppliedOffsets } from '../../infra/event-store/applied.ts'
import { lastPositions, waitForRecords } from '../../infra/event-store/catch-up.ts'
import type { EventLog } from '../../infra/log/port.ts'
import type { Db } from '../../infra/postgres/pool.ts'
import { withTimeout } from '../../infra/timing.ts'
import { auditProjection } from '../../projections/audit/projection.ts'
import { type ListAudit, listAudit } from '../../projections/audit/queries.ts'
import type { AuditRow } from '../../projections/audit/tables.ts'

export interface AuditDeps {
  readPool: Db
  log: Pick<EventLog, 'endPositions'>
  applied: Pick<AppliedOffsets, 'waitFor'>
}

const waitMs = 1000

/** Returns entries, newest first. Waits up to a second for the read model to catch up. */
export async function readAuditLog(deps: AuditDeps, query: ListAudit) {
  await withTimeout(waitUntilCaughtUp(deps), waitMs).catch(() => {})
  return listAudit(deps.readPool, query)
}

async function waitUntilCaughtUp({ readPool, log, applied }: AuditDeps): Promise<void> {
  const { name: projection, topics } = auditProjection
  const ends = await Promise.all(topics.map((topic) => log.endPositions(topic)))
  await waitForRecords(readPool, {
    applied,
    projection,
    records: lastPositions(ends.flat()),
    timeoutMs: waitMs,
  })
}

export function auditJson({ id, type, occurred_at, environment, ...row }: AuditRow) {
  const { request_id, subject_id, reason, view } = row
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
    view,
    actor,
    request_id,
  }
}
