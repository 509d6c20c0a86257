import type { RecordedEvent } from '../../infra/event-store/codec.ts'
import { appliedRow, type Projection } from '../../infra/event-store/projection.ts'
import type { Part } from '../../infra/postgres/arrays.ts'
import type { Tx } from '../../infra/postgres/pool.ts'
import { insertRows, saveRows } from '../../infra/postgres/table.ts'
import { eventTopics } from '../../schemas/events.ts'
import { dataExpirations, dataPolicies, policyAppliedEvents, scoringModels } from './tables.ts'

const tables = [dataPolicies, dataExpirations, scoringModels, policyAppliedEvents]

/** What is recorded of each organization's visitors, what of it has ended, and by which models they are scored. */
export const policiesProjection: Projection = {
  name: 'policies',
  version: 2,
  topics: [eventTopics.OrganizationDataPolicyChanged],
  tables: tables.map(({ name }) => name),
  ddl: tables.map(({ ddl }) => ddl).join(''),
  indexes: '',
  appliedIn: [policyAppliedEvents.name],
  apply,
  subjectsOf: (events) => [
    ...new Set(
      [...policiesIn(events), ...modelsIn(events)].map((data) => data.organization_id ?? 'everybody'),
    ),
  ],
}

async function apply(_: Tx, events: RecordedEvent[]): Promise<Part[]> {
  return [
    ...saveRows(dataPolicies, latestOf(policiesIn(events))),
    ...saveRows(dataExpirations, latestOf(expirationsIn(events))),
    ...insertRows(scoringModels, modelsIn(events)),
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
const modelsIn = (events: RecordedEvent[]) =>
  events.flatMap(({ type, data, position }) =>
    type === 'ScoringModelChanged' ? [{ ...data, log_offset: position.offset }] : [],
  )
