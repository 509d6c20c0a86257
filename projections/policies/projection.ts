import type { RecordedEvent } from '../../infra/event-store/event.ts'
import { appliedRow, type Projection } from '../../infra/event-store/projection.ts'
import type { Cte } from '../../infra/postgres/arrays.ts'
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

/** Data policies, retention cutoffs, scoring models and trusted agent directories of organizations. */
export const policiesProjection: Projection = {
  name: 'policies',
  version: 4,
  topics: [eventTopics.OrganizationDataPolicyChanged],
  tables: tables.map(({ name }) => name),
  ddl: tables.map(({ ddl }) => ddl).join(''),
  indexes: '',
  appliedIn: [policyAppliedEvents.name],
  isExclusive: () => false,
  apply,
  changedIdsOf: (events) => [
    ...new Set(
      [...policiesIn(events), ...modelsIn(events), ...directoriesIn(events)].map(
        (data) => data.organization_id ?? 'everybody',
      ),
    ),
  ],
}

async function apply(_: Tx, events: RecordedEvent[]): Promise<Cte[]> {
  return [
    ...saveRows(dataPolicies, latestOf(policiesIn(events), organizationOf)),
    ...saveRows(dataExpirations, latestOf(expirationsIn(events), organizationOf)),
    ...insertRows(scoringModels, modelsIn(events)),
    ...saveRows(agentDirectories, latestOf(directoriesIn(events), directoryOf)),
    ...insertRows(policyAppliedEvents, events.map(appliedRow)),
  ]
}

// Each event contains the full state of its subject, so the last one wins.
function latestOf<D>(events: D[], subjectOf: (data: D) => string): D[] {
  return [...new Map(events.map((data) => [subjectOf(data), data])).values()]
}

const organizationOf = ({ organization_id }: { organization_id: string }) => organization_id
const directoryOf = ({ organization_id, domain }: AgentDirectoryRow) =>
  `${organization_id} ${domain}`

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
