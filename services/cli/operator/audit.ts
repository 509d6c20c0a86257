import type { Command } from 'commander'
import { auditJson, readAuditLog } from '../../organizations/audit-log.ts'
import { jsonFlag, listLimit, since } from '../arguments.ts'
import { tableOf, timeText } from '../tables.ts'
import { type OperatorOptions, requireOrganization, runAndPrint } from './run.ts'

export function defineAudit(audit: Command): void {
  audit
    .option('--organization <organization>', 'id or slug of the organization (default: all)')
    .option('--limit <n>', 'maximum number of entries', listLimit, 100)
    .option(
      '--since <time>',
      'only entries since: 7d, 24h, 2026-11-23 or 2026-11-23T12:00:00Z',
      since,
    )
    .option(...jsonFlag)
    .action((flags: OperatorOptions & { organization?: string; limit: number; since?: number }) =>
      runAndPrint(flags, async (core) => {
        const { organization, limit, since } = flags
        const organizationId =
          organization && (await requireOrganization(core.pool, organization)).id
        const { rows } = await readAuditLog(core, { organizationId, limit, since })
        const data = rows.map((row) => ({
          ...auditJson(row),
          organization_id: row.organization_id,
        }))
        const table = tableOf(rows, {
          time: ({ occurred_at }) => timeText(occurred_at),
          event: ({ type }) => type,
          organization: ({ organization_id }) => organization_id,
          subject: ({ subject_id }) => subject_id,
          actor: ({ actor_type, actor_id }) =>
            actor_type === null ? 'unknown' : `${actor_type} ${actor_id}`,
          request: ({ request_id }) => request_id,
          reason: ({ reason }) => reason,
        })
        return { data, text: rows.length > 0 ? table : 'None.' }
      }),
    )
}
