import type { RecordedEvent } from '../../infra/event-store/event.ts'
import { appliedRow, evolveState, type Projection } from '../../infra/event-store/projection.ts'
import type { Cte } from '../../infra/postgres/arrays.ts'
import type { Tx } from '../../infra/postgres/pool.ts'
import { insertRows, loadRows, saveRows } from '../../infra/postgres/table.ts'
import { eventTopics } from '../../schemas/events.ts'
import { evolveKey, evolveOrganization } from './evolve.ts'
import { apiKeys, appliedEvents, organizationReadIndexes, organizations } from './tables.ts'

const tables = [organizations, apiKeys, appliedEvents]

export const organizationsProjection: Projection = {
  name: 'organizations',
  version: 2,
  topics: [eventTopics.OrganizationCreated],
  tables: tables.map(({ name }) => name),
  ddl: tables.map(({ ddl }) => ddl).join(''),
  indexes: organizationReadIndexes,
  appliedIn: [appliedEvents.name],
  isExclusive: () => false,
  apply,
  changedIdsOf,
}

const keyIdOf = (data: RecordedEvent['data']): string[] =>
  'key_id' in data && data.key_id !== null ? [data.key_id] : []

// All events of an organization are in the same partition, so no concurrent batch changes the same rows.
async function apply(tx: Tx, events: RecordedEvent[]): Promise<Cte[]> {
  const organizationIds = events.map(organizationIdOf)
  const keyIds = events.flatMap(({ data }) => keyIdOf(data))
  const states = await loadRows(tx, organizations, { by: 'id', ids: organizationIds })
  const keys = await loadRows(tx, apiKeys, { by: 'id', ids: keyIds })
  for (const event of events) {
    evolveState(states, organizationIdOf(event), (state) => evolveOrganization(state, event))
    for (const id of keyIdOf(event.data)) evolveState(keys, id, (state) => evolveKey(state, event))
  }
  return [
    ...saveRows(organizations, [...states.values()]),
    ...saveRows(apiKeys, [...keys.values()]),
    ...insertRows(appliedEvents, events.map(appliedRow)),
  ]
}

// Events that change neither cached keys nor the recipients of sealed tokens.
const typesWithoutNotification: ReadonlySet<string> = new Set([
  'OrganizationCreated',
  'OrganizationRenamed',
  'ApiKeyRenamed',
  'ViewSaved',
  'ViewDeleted',
  'AlertSaved',
  'AlertDeleted',
])

function changedIdsOf(events: RecordedEvent[]): string[] {
  const relevant = events.filter(({ type }) => !typesWithoutNotification.has(type))
  return [...new Set(relevant.map(organizationIdOf))]
}

function organizationIdOf({ data }: RecordedEvent): string {
  return ('organization_id' in data && data.organization_id) || ''
}
