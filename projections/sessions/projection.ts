import type { RecordedEvent } from '../../infra/event-store/event.ts'
import type { Projection } from '../../infra/event-store/projection.ts'
import { webhookEventId } from '../../infra/ids.ts'
import { type Cte, runAsOneStatement, unnest } from '../../infra/postgres/arrays.ts'
import type { Tx } from '../../infra/postgres/pool.ts'
import { insertRows, type RowOf, replaceNul } from '../../infra/postgres/table.ts'
import { eventTopics, type SessionScored } from '../../schemas/events.ts'
import { applyMarks, isMarkEvent } from './apply-marks.ts'
import {
  applyReassignments,
  isReassignment,
  type ReassignmentEvent,
} from './apply-reassignments.ts'
import {
  type ClientUserEvent,
  createRequestTexts,
  linkedVisitor,
  type ScoredEvent,
  type SearchableEvent,
  saveTexts,
  upsertVisitors,
  userText,
} from './apply-visitors.ts'
import { eraseSessions } from './erase.ts'
import { handedOffAt, type markColumns, type SessionFacts, sessionFacts } from './facts.ts'
import { captureSetting, factsMigrations, factsTriggers } from './facts-outbox.ts'
import { deleteRollUpsCte, sessionHours } from './hours.ts'
import { comparedRows, createSessionPruner } from './prune.ts'
import { analystsMigrations, sessionFactsView } from './session-facts.ts'
import { signalCodes } from './signal-codes.ts'
import {
  clientUserChanges,
  decisionStorage,
  decisions,
  type SessionEventType,
  searchTexts,
  sessionApplyIndexes,
  sessionEvents,
  sessionMarks,
  sessionReadIndexes,
  sessions,
  visitorSessions,
  visitors,
} from './tables.ts'

const markNames = ['mark_id', 'mark', 'mark_reason', 'marked_at'] as const

const tables = [
  sessions,
  decisions,
  clientUserChanges,
  sessionMarks,
  visitors,
  visitorSessions,
  searchTexts,
  sessionEvents,
  sessionHours,
]

/** Sessions, decisions and visitors, in a single projection so that a session and its visitor appear together. */
export const sessionsProjection: Projection = {
  name: 'sessions',
  version: 5,
  topics: [eventTopics.SessionScored, eventTopics.VisitorErased],
  tables: tables.map(({ name }) => name),
  views: { session_facts: sessionFactsView },
  migrations: [analystsMigrations, factsMigrations],
  ddl: tables.map(({ ddl }) => ddl).join('') + decisionStorage + sessionApplyIndexes,
  setting: captureSetting,
  indexes: sessionReadIndexes + factsTriggers,
  appliedIn: [decisions.name, clientUserChanges.name, sessionMarks.name],
  apply,
  // A reassignment rebuilds a visitor's row from decisions of all partitions.
  isExclusive: isReassignment,
  createPrune: createSessionPruner,
  erase: eraseSessions,
  comparedRows,
  changedIdsOf: (events) =>
    events.flatMap(({ type, data }) => (type === 'SessionScored' ? [data.event_id] : [])),
}

// All events of a session are in the same partition, so offsets order its decisions. A visitor's sessions are in many
// partitions, so evaluation times order them.
async function apply(tx: Tx, recorded: RecordedEvent[]): Promise<Cte[]> {
  const events = recorded.filter(({ isErased }) => !isErased)
  const changes = events.filter(isClientUserEvent)
  const marks = events.filter(isMarkEvent)
  const scored = await writeUpToLastReassignment(tx, events)
  if (changes.length === 0 && marks.length === 0) return scoredWrites(scored)
  // Decisions create the sessions that marks and users change.
  await runAsOneStatement(tx, scoredWrites(scored))
  await applyMarks(tx, marks)
  return clientUserWrites(changes)
}

// Writes everything up to the last reassignment, because reassignments change the rows of earlier decisions. Returns
// the later decisions.
async function writeUpToLastReassignment(tx: Tx, events: RecordedEvent[]): Promise<ScoredEvent[]> {
  let [scored, reassignments]: [ScoredEvent[], ReassignmentEvent[]] = [[], []]
  async function write(): Promise<void> {
    if (reassignments.length === 0) return
    await runAsOneStatement(tx, scoredWrites(scored))
    await applyReassignments(tx, reassignments)
    scored = []
    reassignments = []
  }
  for (const event of events) {
    if (isReassignment(event)) reassignments.push(event)
    if (event.type !== 'SessionScored') continue
    await write()
    scored.push(event)
  }
  await write()
  return scored
}

function isClientUserEvent(event: RecordedEvent): event is ClientUserEvent {
  return event.type === 'ClientUserAttached' || event.type === 'ClientUserCleared'
}

function scoredWrites(scored: ScoredEvent[]): Cte[] {
  const textsOf = createRequestTexts()
  const events = scored.map((event) => ({ ...event, texts: textsOf(event.data) }))
  if (events.length === 0) return []
  return [
    ...insertRows(decisions, events.map(decisionRow), { areNew: true }),
    { as: 'put_sessions', sql: (first) => upsertSessions(events, first) },
    deleteRollUpsCte(events.map(({ data }) => data)),
    ...upsertVisitors(events),
    ...insertRows(sessionEvents, events.flatMap(sessionEventRows)),
    ...saveTexts(events.flatMap(({ texts }) => Object.values(texts))),
  ]
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
  const { observed_at } = event.data
  const { partition: log_partition, offset: log_offset } = event.position
  return { ...commonColumns(event), log_partition, log_offset, observed_at, event: event.value }
}

// Ids derive from type and session, so only the session's first event of a type is inserted.
function sessionEventRows({ data }: ScoredEvent): RowOf<typeof sessionEvents>[] {
  const { organization_id, environment, evaluated_at: created_at, event_id: decision_id } = data
  const columns = {
    organization_id,
    environment,
    created_at,
    decision_id,
    visitor: null,
    session_id: null,
  }
  return raisedEventTypes(data).map((type) => ({
    id: webhookEventId(type, data.session_id),
    type,
    ...columns,
  }))
}

export function raisedEventTypes({ visitor, is_provisional }: SessionScored): SessionEventType[] {
  return [
    ...(visitor ? (['session.fingerprint.calculated'] as const) : []),
    ...(is_provisional ? [] : (['session.result.persisted'] as const)),
  ]
}

interface LatestDecision extends Pick<SessionFacts, 'handed_off_at'> {
  event: SearchableEvent
  first: SearchableEvent
}

const sessionColumns = sessions.columnsWithout('client_user_id', 'user_text', ...markNames)
type SessionRow = Omit<
  RowOf<typeof sessions>,
  'client_user_id' | 'user_text' | keyof typeof markColumns
>
const fixedColumns = ['session_id', 'organization_id', 'environment', 'created_at']
// Columns that keep their value if a later decision has none.
const stickyColumns = ['handed_off_at']
const assignments = sessionColumns
  .filter(({ name }) => !fixedColumns.includes(name))
  .map(
    ({ name }) =>
      `${name} = ${stickyColumns.includes(name) ? `coalesce(excluded.${name}, s.${name})` : `excluded.${name}`}`,
  )

// `events` must be in offset order.
function upsertSessions(events: SearchableEvent[], first: number) {
  const { names, source, values } = unnest(
    sessionColumns,
    latestOfSessions(events).map(sessionRow),
    first,
  )
  // The client user id may have been attached before the session's row existed.
  const text = `insert into sessions as s (${names}, client_user_id, user_text)
    select i.*, u.client_user_id, u.user_text from ${source} as i (${names})
    left join lateral (
      select client_user_id, user_text from client_user_changes c
      where c.session_id = i.session_id order by log_offset desc limit 1
    ) u on true
    on conflict (session_id) do update set ${assignments.join(', ')}`
  return { text, values }
}

function latestOfSessions(events: SearchableEvent[]): LatestDecision[] {
  const latest = new Map<string, LatestDecision>()
  for (const event of events) {
    const previous = latest.get(event.data.session_id)
    const handed_off_at = handedOffAt(event.data) ?? previous?.handed_off_at ?? null
    latest.set(event.data.session_id, { event, first: previous?.first ?? event, handed_off_at })
  }
  return [...latest.values()]
}

function sessionRow({ event, first, handed_off_at }: LatestDecision): SessionRow {
  const { page, agent, address } = event.texts
  const facts = sessionFacts(event.data)
  return {
    ...commonColumns(event),
    created_at: first.data.created_at,
    visitor: linkedVisitor(event.data.visitor),
    page_text: page.id,
    agent_text: agent.id,
    address_text: address.id,
    key_id: event.data.key_id,
    ...facts,
    handed_off_at,
    signal_codes: signalCodes(facts.signals ?? []),
  }
}

function clientUserWrites(events: ClientUserEvent[]): Cte[] {
  if (events.length === 0) return []
  const latest = new Map(events.map((event) => [event.data.session_id, event]))
  return [
    { as: 'update_client_users', sql: (first) => updateClientUsers([...latest.values()], first) },
    ...insertRows(clientUserChanges, events.map(changeRow)),
    // Saves the texts of all events, so that the result does not depend on how the log was divided into batches.
    ...saveTexts(events.flatMap((event) => userText(event) ?? [])),
  ]
}

function changeRow(event: ClientUserEvent): RowOf<typeof clientUserChanges> {
  const { event_id, session_id } = event.data
  const user = event.type === 'ClientUserAttached' ? replaceNul(event.data.client_user_id) : null
  const log_offset = event.position.offset
  return {
    event_id,
    session_id,
    log_offset,
    client_user_id: user,
    user_text: userText(event)?.id ?? null,
  }
}

function updateClientUsers(changes: ClientUserEvent[], first: number) {
  const columns = clientUserChanges.columnsWithout('event_id', 'log_offset')
  const { names, source, values } = unnest(columns, changes.map(changeRow), first)
  const text = `update sessions as s set client_user_id = c.client_user_id, user_text = c.user_text
    from ${source} as c (${names}) where s.session_id = c.session_id`
  return { text, values }
}
