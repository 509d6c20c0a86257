import type { Command } from 'commander'
import type { AuditRow } from '../../../projections/audit/tables.ts'
import { auditJson, readAuditLog } from '../../organizations/audit-log.ts'
import { atMost, instant, jsonFlag } from '../arguments.ts'
import { shownTime, textTable } from '../tables.ts'
import { type OperatorOptions, operate, requireOrganization } from './operate.ts'

export function defineAudit(audit: Command): void {
  audit
    .option('--organization <organization>', 'only what happened in it; its id or slug (default: all)')
    .option('--limit <n>', 'how many at most', atMost, 100)
    .option('--since <time>', 'only what happened from this time on, as 2026-11-23T12:00:00Z', instant)
    .option(...jsonFlag)
    .action((flags: OperatorOptions & { organization?: string; limit: number; since?: number }) =>
      operate(flags, async (core) => {
        const { organization, limit, since } = flags
        const organizationId = organization && (await requireOrganization(core.pool, organization)).id
        const { rows } = await readAuditLog(core, { organizationId, limit, since })
        const data = rows.map((row) => ({ ...auditJson(row), organization_id: row.organization_id }))
        return { data, text: rows.length > 0 ? auditTable(rows) : 'None.' }
      }),
    )
}

function auditTable(rows: AuditRow[]): string {
  const head = ['time', 'event', 'organization', 'subject', 'actor', 'request']
  return textTable(
    head,
    rows.map((row) => [
      ...[shownTime(row.occurred_at), row.type, row.organization_id, row.subject_id],
      ...[row.actor_type === null ? 'unknown' : `${row.actor_type} ${row.actor_id}`, row.request_id],
    ]),
  )
}
