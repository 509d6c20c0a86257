import { column, nullable, primaryKey, type RowOf, table } from '../../infra/postgres/table.ts'
import type { ActorType, CausedName, Environment } from '../../schemas/events.ts'

/** Audit entries. Times are epoch milliseconds. */
export const auditEntries = table('audit_entries', {
  id: primaryKey(column.id(), 'event_id'),
  /** null for events that belong to no organization. */
  organization_id: nullable(column.id()),
  environment: nullable(column.text<Environment>()),
  type: column.text<CausedName>(),
  occurred_at: column.bigint(),
  actor_type: column.text<ActorType>(),
  actor_id: column.id(),
  request_id: nullable(column.id()),
  subject_id: column.id(),
  /** Reason that the operator gave for a correction or a model change; otherwise null. */
  reason: nullable(column.text()),
  /** Name and parameter names of a saved view; null for other subjects. */
  view: nullable(column.json<{ name: string; fields: string[] }>()),
})
export type AuditRow = RowOf<typeof auditEntries>

export const auditReadIndexes = `
  create index on audit_entries (organization_id, occurred_at, event_id);
  create index on audit_entries (organization_id, subject_id, occurred_at, event_id);
  create index on audit_entries (occurred_at, event_id);
`
