import type { RecordedEvent } from '../../infra/event-store/codec.ts'
import { evolveIn, newEvents, type Projection } from '../../infra/event-store/projection.ts'
import type { Tx } from '../../infra/postgres/pool.ts'
import { loadRows, saveRows } from '../../infra/postgres/table.ts'
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
  apply,
  subjectsOf,
}

/** One partition has all events of an organization. */
async function apply(tx: Tx, events: RecordedEvent[]): Promise<void> {
  const fresh = await newEvents(tx, appliedEvents, events)
  if (fresh.length === 0) return
  const organizationIds = fresh.map(organizationIdOf)
  const keyIds = fresh.flatMap(({ data }) => ('key_id' in data ? [data.key_id] : []))
  const states = await loadRows(tx, organizations, { by: 'id', ids: organizationIds })
  const keys = await loadRows(tx, apiKeys, { by: 'id', ids: keyIds })
  for (const event of fresh) {
    evolveIn(states, organizationIdOf(event), (state) => evolveOrganization(state, event))
    if ('key_id' in event.data) evolveIn(keys, event.data.key_id, (state) => evolveKey(state, event))
  }
  await saveRows(tx, organizations, [...states.values()])
  await saveRows(tx, apiKeys, [...keys.values()])
}

/** No cached key depends on these. */
const unseen: ReadonlySet<string> = new Set([
  'OrganizationCreated',
  'OrganizationRenamed',
  'ApiKeyIssued',
  'ApiKeyRenamed',
])

function subjectsOf(events: RecordedEvent[]): string[] {
  const seen = events.filter(({ type }) => !unseen.has(type))
  return [...new Set(seen.map(organizationIdOf))]
}

function organizationIdOf({ data }: RecordedEvent): string {
  return ('organization_id' in data && data.organization_id) || ''
}
