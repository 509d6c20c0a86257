import type { RecordedEvent } from '../../infra/event-store/codec.ts'
import { appliedRow, evolveIn, type Projection } from '../../infra/event-store/projection.ts'
import type { Part } from '../../infra/postgres/arrays.ts'
import type { Tx } from '../../infra/postgres/pool.ts'
import { insertRows, loadRows, saveRows } from '../../infra/postgres/table.ts'
import { eventTopics } from '../../schemas/events.ts'
import {
  evolveAgentToken,
  evolveService,
  evolveSession,
  isGateSessionEvent,
  isServiceEvent,
  isTokenEvent,
} from './evolve.ts'
import {
  type GateServiceRow,
  gateAgentTokens,
  gateAppliedEvents,
  gateReadIndexes,
  gateServices,
  gateSessions,
} from './tables.ts'

const tables = [gateServices, gateSessions, gateAgentTokens, gateAppliedEvents]

export const gateProjection: Projection = {
  name: 'gate',
  version: 2,
  topics: [eventTopics.GateSessionOpened],
  tables: tables.map(({ name }) => name),
  ddl: tables.map(({ ddl }) => ddl).join(''),
  indexes: gateReadIndexes,
  appliedIn: [gateAppliedEvents.name],
  apply,
}

// One partition has all events of a service, and all of a session with the agent token that it issued.
async function apply(tx: Tx, events: RecordedEvent[]): Promise<Part[]> {
  const serviceIds = events.filter(isServiceEvent).map(({ data }) => data.service_id)
  const sessionIds = events.filter(isGateSessionEvent).map(({ data }) => data.gate_session_id)
  const accountIds = events.filter(isTokenEvent).map(({ data }) => data.gate_account_id)
  const services: Map<string, GateServiceRow> = await loadRows(tx, gateServices, {
    by: 'id',
    ids: serviceIds,
  })
  const sessions = await loadRows(tx, gateSessions, { by: 'id', ids: sessionIds })
  const tokens = await loadRows(tx, gateAgentTokens, { by: 'gate_account_id', ids: accountIds })
  for (const event of events) {
    if (isServiceEvent(event))
      evolveIn(services, event.data.service_id, (state) => evolveService(state, event))
    if (isGateSessionEvent(event))
      evolveIn(sessions, event.data.gate_session_id, (state) => evolveSession(state, event))
    if (isTokenEvent(event)) {
      const { gate_account_id, gate_session_id } = event.data
      const session = sessions.get(gate_session_id)
      evolveIn(tokens, gate_account_id, (state) => evolveAgentToken(state, event, session))
    }
  }
  return [
    ...saveServices([...services.values()]),
    ...saveRows(gateSessions, [...sessions.values()]),
    ...saveRows(gateAgentTokens, [...tokens.values()]),
    ...insertRows(gateAppliedEvents, events.map(appliedRow)),
  ]
}

function saveServices(services: GateServiceRow[]): Part[] {
  const rows = services.map((service) => {
    const { discoverable, webhook_endpoint_id } = service.definition
    return { ...service, discoverable, webhook_endpoint_id }
  })
  return saveRows(gateServices, rows)
}
