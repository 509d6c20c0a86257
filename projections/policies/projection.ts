import type { RecordedEvent } from '../../infra/event-store/codec.ts'
import { appliedRow, type Projection } from '../../infra/event-store/projection.ts'
import type { Part } from '../../infra/postgres/arrays.ts'
import type { Tx } from '../../infra/postgres/pool.ts'
import { insertRows, saveRows } from '../../infra/postgres/table.ts'
import { eventTopics } from '../../schemas/events.ts'
import {
  type AgentDirectoryRow,
  agentDirectories,
  dataExpirations,
  dataPolicies,
  policyAppliedEvents,
  scoringModels,
} from './tables.ts'

const tables = [dataPolicies, dataExpirations, scoringModels, agentDirectories, policyAppliedEvents]

/** What is recorded of each organization's visitors, what of it has ended, by which models they are scored, and which agents it trusts. */
export const policiesProjection: Projection = {
  name: 'policies',
  version: 3,
  topics: [eventTopics.OrganizationDataPolicyChanged],
  tables: tables.map(({ name }) => name),
  ddl: tables.map(({ ddl }) => ddl).join(''),
  indexes: '',
  appliedIn: [policyAppliedEvents.name],
  apply,
  subjectsOf: (events) => [
    ...new Set(
      [...policiesIn(events), ...modelsIn(events), ...directoriesIn(events)].map(
        (data) => data.organization_id ?? 'everybody',
      ),
    ),
  ],
}

async function apply(_: Tx, events: RecordedEvent[]): Promise<Part[]> {
  return [
    ...saveRows(dataPolicies, latestOf(policiesIn(events))),
    ...saveRows(dataExpirations, latestOf(expirationsIn(events))),
    ...insertRows(scoringModels, modelsIn(events)),
    ...saveRows(agentDirectories, newestDirectories(events)),
    ...insertRows(policyAppliedEvents, events.map(appliedRow)),
  ]
}

// Each event says all, so the last one of an organization counts.
function latestOf<D extends { organization_id: string }>(all: D[]): D[] {
  return [...new Map(all.map((data) => [data.organization_id, data])).values()]
}

function newestDirectories(events: RecordedEvent[]): AgentDirectoryRow[] {
  const rows = directoriesIn(events).map((row) => [`${row.organization_id} ${row.domain}`, row] as const)
  return [...new Map(rows).values()]
}

function directoriesIn(events: RecordedEvent[]): AgentDirectoryRow[] {
  return events.flatMap(({ type, data }): AgentDirectoryRow[] => {
    if (type === 'AgentDirectoryAdded') {
      const { added_at: changed_at, ...row } = data
      return [{ ...row, is_trusted: true, changed_at }]
    }
    if (type !== 'AgentDirectoryRemoved') return []
    const { removed_at: changed_at, ...row } = data
    return [{ ...row, name: null, is_trusted: false, changed_at }]
  })
}

const policiesIn = (events: RecordedEvent[]) =>
  events.flatMap(({ type, data }) => (type === 'OrganizationDataPolicyChanged' ? [data] : []))
const expirationsIn = (events: RecordedEvent[]) =>
  events.flatMap(({ type, data }) => (type === 'OrganizationDataExpired' ? [data] : []))
const modelsIn = (events: RecordedEvent[]) =>
  events.flatMap(({ type, data, position }) =>
    type === 'ScoringModelChanged' ? [{ ...data, log_offset: position.offset }] : [],
  )
