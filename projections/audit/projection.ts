import type { RecordedEvent } from '../../infra/event-store/event.ts'
import type { Projection } from '../../infra/event-store/projection.ts'
import { derivedId } from '../../infra/ids.ts'
import { placeName } from '../../infra/log/port.ts'
import type { Part } from '../../infra/postgres/arrays.ts'
import type { Tx } from '../../infra/postgres/pool.ts'
import { insertRows } from '../../infra/postgres/table.ts'
import { type Cause, type CausedName, causedNames, eventTopics } from '../../schemas/events.ts'
import { type AuditRow, auditEntries, auditReadIndexes } from './tables.ts'

const types: ReadonlySet<string> = new Set(causedNames)
const topics = [...new Set(causedNames.map((name) => eventTopics[name]))]

/** Who did what, of all events that were caused by somebody; of a mark once for all of its sessions. */
export const auditProjection: Projection = {
  name: 'audit',
  version: 2,
  topics,
  types,
  tables: [auditEntries.name],
  ddl: auditEntries.ddl,
  indexes: auditReadIndexes,
  appliedIn: [auditEntries.name],
  gatherMs: 500,
  isExclusive: () => false,
  apply,
}

export type CausedEvent = Extract<RecordedEvent, { type: CausedName }> & { cause: Cause }

async function apply(_tx: Tx, events: RecordedEvent[]): Promise<Part[]> {
  return insertRows(auditEntries, events.filter(isCaused).map(entry))
}

const isCaused = (event: RecordedEvent): event is CausedEvent =>
  types.has(event.type) && event.cause !== undefined

function entry(event: CausedEvent): AuditRow {
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
    subject_id: subjectOf(event),
    reason: reasonOf(event),
  }
}

// Other reasons are of a fixed list, or of a person who can be erased.
const reasonOf = (event: CausedEvent): string | null =>
  event.type === 'VisitorCorrected' || event.type === 'ScoringModelChanged'
    ? event.data.reason
    : null

// A mark of a thousand sessions was one request, and as many entries would hide what else was done.
function entryIdOf({ type, data, meta, cause }: CausedEvent): string {
  return 'mark_id' in data
    ? derivedId('evt', type, data.mark_id, cause.request_id ?? '')
    : meta.eventId
}

/**
 * The id of what the event is about. It is nobody's name, address or secret: whoever knows the id of a Gate session
 * that is pending may decide about it.
 */
export function subjectOf({ data }: Pick<CausedEvent, 'data'>): string {
  if ('erasure_id' in data) return data.erasure_id
  if ('key_id' in data) return data.key_id
  if ('delivery_id' in data) return data.delivery_id
  if ('endpoint_id' in data) return data.endpoint_id
  if ('mark_id' in data) return data.mark_id
  if ('session_id' in data) return data.session_id
  if ('gate_account_id' in data) return data.gate_account_id
  if ('service_id' in data) return data.service_id
  if ('visitor_id' in data) return data.visitor_id
  // Only events about sessions that have ended come here.
  if ('gate_session_id' in data) return data.gate_session_id
  // Not the offset: it is another one in a copy of the log.
  if ('skipped_topic' in data)
    return placeName({ topic: data.skipped_topic, partition: data.skipped_partition })
  if ('engine_family' in data) return data.engine_family
  if ('domain' in data) return data.domain
  if ('model_id' in data) return data.model_id ?? data.organization_id ?? 'everybody'
  return data.organization_id
}
