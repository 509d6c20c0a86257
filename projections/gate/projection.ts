import type { RecordedEvent } from '../../infra/event-store/codec.ts'
import { evolveIn, newEvents, type Projection } from '../../infra/event-store/projection.ts'
import type { Tx } from '../../infra/postgres/pool.ts'
import { loadRows, saveRows } from '../../infra/postgres/table.ts'
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
  apply,
}

/** One partition has all events of a service, and all of a session with the agent token that it issued. */
async function apply(tx: Tx, events: RecordedEvent[]): Promise<void> {
  const fresh = await newEvents(tx, gateAppliedEvents, events)
  if (fresh.length === 0) return
  const serviceIds = fresh.filter(isServiceEvent).map(({ data }) => data.service_id)
  const sessionIds = fresh.filter(isGateSessionEvent).map(({ data }) => data.gate_session_id)
  const accountIds = fresh.filter(isTokenEvent).map(({ data }) => data.gate_account_id)
  const services: Map<string, GateServiceRow> = await loadRows(tx, gateServices, {
    by: 'id',
    ids: serviceIds,
  })
  const sessions = await loadRows(tx, gateSessions, { by: 'id', ids: sessionIds })
  const tokens = await loadRows(tx, gateAgentTokens, { by: 'gate_account_id', ids: accountIds })
  for (const event of fresh) {
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
  await saveServices(tx, [...services.values()])
  await saveRows(tx, gateSessions, [...sessions.values()])
  await saveRows(tx, gateAgentTokens, [...tokens.values()])
}

function saveServices(tx: Tx, services: GateServiceRow[]): Promise<void> {
  const rows = services.map((service) => {
    const { discoverable, webhook_endpoint_id } = service.definition
    return { ...service, discoverable, webhook_endpoint_id }
  })
  return saveRows(tx, gateServices, rows)
}
