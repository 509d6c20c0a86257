import type { RecordedEvent } from '../../infra/event-store/codec.ts'
import type { Projection } from '../../infra/event-store/projection.ts'
import { webhookEventId } from '../../infra/ids.ts'
import { type Part, runTogether, unnest } from '../../infra/postgres/arrays.ts'
import type { Tx } from '../../infra/postgres/pool.ts'
import { insertNewRows, type RowOf, storable } from '../../infra/postgres/table.ts'
import { eventTopics, type SessionScored } from '../../schemas/events.ts'
import {
  type ClientUserEvent,
  type FoundEvent,
  linkedVisitor,
  requestTexts,
  type ScoredEvent,
  saveTexts,
  upsertVisitors,
  userText,
} from './apply-visitors.ts'
import {
  clientUserChanges,
  decisions,
  type SessionEventType,
  searchTexts,
  sessionApplyIndexes,
  sessionEvents,
  sessionReadIndexes,
  sessions,
  visitorSessions,
  visitors,
} from './tables.ts'

const tables = [sessions, decisions, clientUserChanges, visitors, visitorSessions, searchTexts, sessionEvents]

/** One projection, so that a session and its visitor appear together. */
export const sessionsProjection: Projection = {
  name: 'sessions',
  version: 5,
  topics: [eventTopics.SessionScored],
  tables: tables.map(({ name }) => name),
  ddl: tables.map(({ ddl }) => ddl).join('') + sessionApplyIndexes,
  indexes: sessionReadIndexes,
  apply,
  subjectsOf: (events) =>
    events.flatMap(({ type, data }) => (type === 'SessionScored' ? [data.event_id] : [])),
}

// One partition has all of a session's events, so the offset says which decision is the latest. A visitor's
// sessions are in many partitions, so there the evaluation time says it.
async function apply(tx: Tx, events: RecordedEvent[]): Promise<void> {
  await applyScored(
    tx,
    events.filter((event): event is ScoredEvent => event.type === 'SessionScored'),
  )
  await applyClientUsers(tx, events.filter(isClientUserEvent))
}

function isClientUserEvent(event: RecordedEvent): event is ClientUserEvent {
  return event.type === 'ClientUserAttached' || event.type === 'ClientUserCleared'
}

async function applyScored(tx: Tx, scored: ScoredEvent[]): Promise<void> {
  const inserted = await insertNewRows(tx, decisions, scored.map(decisionRow))
  // delete makes a second event of the same id within the batch a repeat, too.
  const fresh = scored
    .filter(({ data }) => inserted.delete(data.event_id))
    .map((event) => ({ ...event, texts: requestTexts(event.data) }))
  if (fresh.length === 0) return
  await runTogether(tx, [
    { as: 'put_sessions', at: (first) => upsertSessions(fresh, first) },
    ...upsertVisitors(fresh),
    ...insertSessionEvents(fresh.flatMap(sessionEventRows)),
    ...saveTexts(fresh.flatMap(({ texts }) => Object.values(texts))),
  ])
}

function commonColumns({ data }: ScoredEvent) {
  return {
    event_id: data.event_id,
    session_id: data.session_id,
    organization_id: data.organization_id,
    environment: data.environment,
    visitor_id: data.visitor?.id ?? null,
    evaluated_at: data.evaluated_at,
    evaluation_duration_ms: data.evaluation_duration_ms,
    verdict: data.verdict,
    risk_score: data.risk_score,
    phase: data.phase,
    is_provisional: data.is_provisional,
    manipulation: data.manipulation,
  }
}

function decisionRow(event: ScoredEvent): RowOf<typeof decisions> {
  return { ...commonColumns(event), log_offset: event.position.offset, event: event.value }
}

// One for each thing that a decision tells; the first decision that tells it counts.
function sessionEventRows({ data }: ScoredEvent): RowOf<typeof sessionEvents>[] {
  const { session_id, organization_id, environment, evaluated_at: created_at, event_id: decision_id } = data
  const about = { organization_id, environment, created_at, decision_id }
  return toldTypes(data).map((type) => ({ id: webhookEventId(type, session_id), type, ...about }))
}

export function toldTypes({ visitor, is_provisional }: SessionScored): SessionEventType[] {
  return [
    ...(visitor ? (['session.fingerprint.calculated'] as const) : []),
    ...(is_provisional ? [] : (['session.result.persisted'] as const)),
  ]
}

interface Latest {
  event: FoundEvent
  first: FoundEvent
}

const sessionColumns = sessions.columnsWithout('client_user_id', 'user_text')
const unchanged = ['session_id', 'organization_id', 'environment', 'created_at']
const replaced = sessionColumns
  .filter(({ name }) => !unchanged.includes(name))
  .map(({ name }) => `${name} = excluded.${name}`)

// `fresh` are decisions not applied before, in offset order.
function upsertSessions(fresh: FoundEvent[], first: number) {
  const { names, source, values } = unnest(sessionColumns, latestBySession(fresh).map(sessionRow), first)
  // A session that is new here may have been given its client user id already.
  const text = `insert into sessions as s (${names}, client_user_id, user_text)
    select i.*, u.client_user_id, u.user_text from ${source} as i (${names})
    left join lateral (
      select client_user_id, user_text from client_user_changes c
      where c.session_id = i.session_id order by log_offset desc limit 1
    ) u on true
    on conflict (session_id) do update set ${replaced.join(', ')}`
  return { text, values }
}

function insertSessionEvents(rows: RowOf<typeof sessionEvents>[]): Part[] {
  if (rows.length === 0) return []
  const at = (first: number) => {
    const { names, source, values } = unnest(sessionEvents.columns, rows, first)
    return {
      text: `insert into session_events (${names}) select * from ${source} on conflict do nothing`,
      values,
    }
  }
  return [{ as: 'put_events', at }]
}

function latestBySession(fresh: FoundEvent[]): Latest[] {
  const latest = new Map<string, Latest>()
  for (const event of fresh) {
    const first = latest.get(event.data.session_id)?.first ?? event
    latest.set(event.data.session_id, { event, first })
  }
  return [...latest.values()]
}

function sessionRow({ event, first }: Latest): RowOf<typeof sessions> {
  const { page, agent, address } = event.texts
  return {
    ...commonColumns(event),
    client_user_id: null,
    created_at: first.data.created_at,
    visitor: linkedVisitor(event.data.visitor),
    page_text: page.id,
    agent_text: agent.id,
    address_text: address.id,
    user_text: null,
  }
}

async function applyClientUsers(tx: Tx, events: ClientUserEvent[]): Promise<void> {
  const inserted = await insertNewRows(tx, clientUserChanges, events.map(changeRow))
  const fresh = events.filter(({ data }) => inserted.delete(data.event_id))
  if (fresh.length === 0) return
  const last = new Map(fresh.map((event) => [event.data.session_id, event]))
  await updateClientUsers(tx, [...last.values()])
  // Of all, not of the last: where events are cut into batches must change nothing.
  await runTogether(tx, saveTexts(fresh.flatMap((event) => userText(event) ?? [])))
}

function changeRow(event: ClientUserEvent): RowOf<typeof clientUserChanges> {
  const { event_id, session_id } = event.data
  const user = event.type === 'ClientUserAttached' ? storable(event.data.client_user_id) : null
  const log_offset = event.position.offset
  return { event_id, session_id, log_offset, client_user_id: user, user_text: userText(event)?.id ?? null }
}

async function updateClientUsers(tx: Tx, changes: ClientUserEvent[]): Promise<void> {
  const columns = clientUserChanges.columnsWithout('event_id', 'log_offset')
  const { names, source, values } = unnest(columns, changes.map(changeRow))
  await tx.query({
    name: 'update-client-users',
    text: `update sessions as s set client_user_id = c.client_user_id, user_text = c.user_text
      from ${source} as c (${names}) where s.session_id = c.session_id`,
    values,
  })
}
