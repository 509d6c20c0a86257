import type { RecordedEvent } from '../../infra/event-store/event.ts'
import type { Projection } from '../../infra/event-store/projection.ts'
import { derivedId } from '../../infra/ids.ts'
import { partitionName } from '../../infra/log/port.ts'
import type { Cte } from '../../infra/postgres/arrays.ts'
import type { Tx } from '../../infra/postgres/pool.ts'
import { insertRows } from '../../infra/postgres/table.ts'
import { type Cause, type CausedName, causedNames, eventTopics } from '../../schemas/events.ts'
import { type AuditRow, auditEntries, auditReadIndexes } from './tables.ts'

const types: ReadonlySet<string> = new Set(causedNames)
const topics = [...new Set(causedNames.map((name) => eventTopics[name]))]

/** Audit log: one entry per event with a cause. The events of a mark, one per session, share an entry. */
export const auditProjection: Projection = {
  name: 'audit',
  version: 3,
  topics,
  types,
  tables: [auditEntries.name],
  ddl: auditEntries.ddl,
  indexes: auditReadIndexes,
  appliedIn: [auditEntries.name],
  batchDelayMs: 500,
  isExclusive: () => false,
  apply,
}

export type CausedEvent = Extract<RecordedEvent, { type: CausedName }> & { cause: Cause }

async function apply(_tx: Tx, events: RecordedEvent[]): Promise<Cte[]> {
  return insertRows(auditEntries, events.filter(isCaused).map(auditRow))
}

const isCaused = (event: RecordedEvent): event is CausedEvent =>
  types.has(event.type) && event.cause !== undefined

function auditRow(event: CausedEvent): AuditRow {
  const { organizationId, environment, time } = event.meta
  const { actor, request_id } = event.cause
  return {
    id: entryIdOf(event),
    organization_id: organizationId,
    environment,
    type: event.type,
    occurred_at: time,
    actor_type: actor.type,
    actor_id: actor.id,
    request_id,
    subject_id: auditSubjectId(event),
    reason: reasonOf(event),
    view: viewOf(event),
  }
}

// Reasons in other events come from a fixed list, or may contain personal data, which must be erasable.
const reasonOf = (event: CausedEvent): string | null =>
  event.type === 'VisitorCorrected' || event.type === 'ScoringModelChanged'
    ? event.data.reason
    : null

const viewOf = ({ type, data }: CausedEvent): AuditRow['view'] =>
  type === 'ViewSaved' || type === 'ViewDeleted' ? { name: data.name, fields: data.fields } : null

// Returns one id for all sessions of a mark, because a thousand entries for one request would bury everything else.
function entryIdOf({ type, data, meta, cause }: CausedEvent): string {
  return 'mark_id' in data
    ? derivedId('evt', type, data.mark_id, cause.request_id ?? '')
    : meta.eventId
}

/**
 * Returns the id of the event's subject, never a name, an address or a secret. A pending Gate session's id is a secret:
 * its holder can approve or reject the session.
 */
export function auditSubjectId({ data }: Pick<CausedEvent, 'data'>): string {
  if ('erasure_id' in data) return data.erasure_id
  if ('key_id' in data) return data.key_id
  if ('delivery_id' in data) return data.delivery_id
  if ('endpoint_id' in data) return data.endpoint_id
  if ('mark_id' in data) return data.mark_id
  if ('alert_id' in data) return data.alert_id
  if ('view_id' in data) return data.view_id
  if ('session_id' in data) return data.session_id
  if ('gate_account_id' in data) return data.gate_account_id
  if ('service_id' in data) return data.service_id
  if ('visitor_id' in data) return data.visitor_id
  // Events about pending Gate sessions returned above.
  if ('gate_session_id' in data) return data.gate_session_id
  // Omits the offset, which differs in a copy of the log.
  if ('skipped_topic' in data)
    return partitionName({ topic: data.skipped_topic, partition: data.skipped_partition })
  if ('engine_family' in data) return data.engine_family
  if ('domain' in data) return data.domain
  if ('model_id' in data) return data.model_id ?? data.organization_id ?? 'everybody'
  return data.organization_id
}
