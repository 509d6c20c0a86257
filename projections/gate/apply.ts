import type { RecordedEvent } from '../../infra/event-store/codec.ts'
import type { Tx } from '../../infra/postgres/pool.ts'
import { evolveAgentToken, isTokenEvent } from './evolve-agent-token.ts'
import { evolveService, isServiceEvent } from './evolve-service.ts'
import { evolveSession, isSessionEvent } from './evolve-session.ts'
import {
  type ServiceRecord,
  saveAgentTokens,
  saveServices,
  saveSessions,
  serviceFields,
  serviceRow,
  sessionFields,
  tokenFields,
} from './records.ts'
import type { AgentTokenRow, GateServiceRow, GateSessionRow } from './rows.ts'

/**
 * Applies one partition's events, which hold all of a service, and all of a session with the agent token it issued:
 * loads what they touch, evolves it, writes it back whole. Event ids met before are dropped, so a repeat cannot bring
 * an old state back.
 */
export async function apply(tx: Tx, events: RecordedEvent[]): Promise<void> {
  const fresh = await newEvents(tx, events)
  if (fresh.length === 0) return
  const services = await loadServices(tx, fresh)
  const sessions = await loadSessions(tx, fresh)
  const tokens = await loadTokens(tx, fresh)
  for (const event of fresh) {
    if (isServiceEvent(event)) step(services, event.data.service_id, (state) => evolveService(state, event))
    if (isSessionEvent(event))
      step(sessions, event.data.gate_session_id, (state) => evolveSession(state, event))
    if (isTokenEvent(event)) {
      const { gate_account_id, gate_session_id } = event.data
      step(tokens, gate_account_id, (state) => evolveAgentToken(state, event, sessions.get(gate_session_id)))
    }
  }
  await saveServices(tx, [...services.values()])
  await saveSessions(tx, [...sessions.values()])
  await saveAgentTokens(tx, [...tokens.values()])
}

function step<S>(states: Map<string, S>, id: string, evolve: (state: S | undefined) => S | undefined): void {
  const next = evolve(states.get(id))
  if (next) states.set(id, next)
}

async function newEvents(tx: Tx, events: RecordedEvent[]): Promise<RecordedEvent[]> {
  const { rows } = await tx.query<{ event_id: string }>(
    `insert into gate_applied_events select * from unnest($1::text[]) on conflict do nothing returning event_id`,
    [events.map(({ meta }) => meta.eventId)],
  )
  const fresh = new Set(rows.map((row) => row.event_id))
  // delete makes a second event of the same id within the batch a repeat, too.
  return events.filter(({ meta }) => fresh.delete(meta.eventId))
}

async function loadServices(tx: Tx, events: RecordedEvent[]): Promise<Map<string, GateServiceRow>> {
  const ids = events.flatMap((event) => (isServiceEvent(event) ? [event.data.service_id] : []))
  if (ids.length === 0) return new Map()
  const { rows } = await tx.query<ServiceRecord>(
    `select ${serviceFields('s')} from gate_services s where service_id = any($1)`,
    [ids],
  )
  return new Map(rows.map((record) => [record.id, serviceRow(record)]))
}

async function loadSessions(tx: Tx, events: RecordedEvent[]): Promise<Map<string, GateSessionRow>> {
  const ids = events.flatMap((event) => (isSessionEvent(event) ? [event.data.gate_session_id] : []))
  if (ids.length === 0) return new Map()
  const { rows } = await tx.query<GateSessionRow>(
    `select ${sessionFields('s')} from gate_sessions s where gate_session_id = any($1)`,
    [ids],
  )
  return new Map(rows.map((row) => [row.id, row]))
}

async function loadTokens(tx: Tx, events: RecordedEvent[]): Promise<Map<string, AgentTokenRow>> {
  const ids = events.flatMap((event) => (isTokenEvent(event) ? [event.data.gate_account_id] : []))
  if (ids.length === 0) return new Map()
  const { rows } = await tx.query<AgentTokenRow>(
    `select ${tokenFields('t')} from gate_agent_tokens t where gate_account_id = any($1)`,
    [ids],
  )
  return new Map(rows.map((row) => [row.gate_account_id, row]))
}
