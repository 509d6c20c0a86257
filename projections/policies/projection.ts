import type { RecordedEvent } from '../../infra/event-store/codec.ts'
import { appliedRow, type Projection } from '../../infra/event-store/projection.ts'
import type { Part } from '../../infra/postgres/arrays.ts'
import type { Tx } from '../../infra/postgres/pool.ts'
import { insertRows, saveRows } from '../../infra/postgres/table.ts'
import { eventTopics } from '../../schemas/events.ts'
import { dataExpirations, dataPolicies, policyAppliedEvents } from './tables.ts'

const tables = [dataPolicies, dataExpirations, policyAppliedEvents]

/** What is recorded of each organization's visitors, and what of it has ended. */
export const policiesProjection: Projection = {
  name: 'policies',
  version: 2,
  topics: [eventTopics.OrganizationDataPolicyChanged],
  tables: tables.map(({ name }) => name),
  ddl: tables.map(({ ddl }) => ddl).join(''),
  indexes: '',
  appliedIn: [policyAppliedEvents.name],
  apply,
  subjectsOf: (events) => [...new Set(policiesIn(events).map((data) => data.organization_id))],
}

async function apply(_: Tx, events: RecordedEvent[]): Promise<Part[]> {
  return [
    ...saveRows(dataPolicies, latestOf(policiesIn(events))),
    ...saveRows(dataExpirations, latestOf(expirationsIn(events))),
    ...insertRows(policyAppliedEvents, events.map(appliedRow)),
  ]
}

// Each event says all, so the last one of an organization counts.
function latestOf<D extends { organization_id: string }>(all: D[]): D[] {
  return [...new Map(all.map((data) => [data.organization_id, data])).values()]
}

const policiesIn = (events: RecordedEvent[]) =>
  events.flatMap(({ type, data }) => (type === 'OrganizationDataPolicyChanged' ? [data] : []))
const expirationsIn = (events: RecordedEvent[]) =>
  events.flatMap(({ type, data }) => (type === 'OrganizationDataExpired' ? [data] : []))
