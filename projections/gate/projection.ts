import type { RecordedEvent } from '../../infra/event-store/event.ts'
import { appliedRow, evolveState, type Projection } from '../../infra/event-store/projection.ts'
import { type Cte, runAsOneStatement } from '../../infra/postgres/arrays.ts'
import type { Tx } from '../../infra/postgres/pool.ts'
import { insertRows, loadRows, saveRows } from '../../infra/postgres/table.ts'
import { eventTopics, type VisitorErased } from '../../schemas/events.ts'
import {
  erasedSession,
  evolveAgentToken,
  evolveService,
  evolveSession,
  type GateSessionEvent,
  isGateSessionEvent,
  isServiceEvent,
  isTokenEvent,
} from './evolve.ts'
import {
  type GateServiceRow,
  type GateSessionRow,
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
  topics: [eventTopics.GateSessionOpened, eventTopics.VisitorErased],
  tables: tables.map(({ name }) => name),
  ddl: tables.map(({ ddl }) => ddl).join(''),
  indexes: gateReadIndexes,
  appliedIn: [gateAppliedEvents.name],
  isExclusive: () => false,
  apply,
  erase,
}

// All events of a service are in one partition, and so are all events of a session and its agent token.
async function apply(tx: Tx, events: RecordedEvent[]): Promise<Cte[]> {
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
      evolveState(services, event.data.service_id, (state) => evolveService(state, event))
    if (isGateSessionEvent(event))
      evolveState(sessions, event.data.gate_session_id, (state) => evolveOrErase(state, event))
    if (isTokenEvent(event)) {
      const { gate_account_id, gate_session_id } = event.data
      const session = sessions.get(gate_session_id)
      evolveState(tokens, gate_account_id, (state) => evolveAgentToken(state, event, session))
    }
  }
  return [
    ...saveRows(gateServices, [...services.values()].map(withIndexedColumns)),
    ...saveRows(gateSessions, [...sessions.values()]),
    ...saveRows(gateAgentTokens, [...tokens.values()]),
    ...insertRows(gateAppliedEvents, events.map(appliedRow)),
  ]
}

function evolveOrErase(
  state: GateSessionRow | undefined,
  event: GateSessionEvent,
): GateSessionRow | undefined {
  const next = evolveSession(state, event)
  return next && event.isErased ? erasedSession(next) : next
}

async function erase(tx: Tx, erased: VisitorErased[]): Promise<void> {
  const ids = erased.flatMap(({ session_ids }) => session_ids)
  const sessions = await loadRows(tx, gateSessions, { by: 'id', ids })
  if (sessions.size === 0) return
  const rows = [...sessions.values()].map(erasedSession)
  await runAsOneStatement(tx, saveRows(gateSessions, rows))
  await tx.query(
    `update gate_agent_tokens set account_name = '' where gate_account_id = any($1) and gate_session_id = any($2)`,
    [rows.flatMap(({ gate_account_id }) => gate_account_id ?? []), rows.map(({ id }) => id)],
  )
}

function withIndexedColumns(service: GateServiceRow) {
  const { discoverable, webhook_endpoint_id } = service.definition
  return { ...service, discoverable, webhook_endpoint_id }
}
