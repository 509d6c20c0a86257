import type { RecordedEvent } from '../../infra/event-store/event.ts'
import type { Projection } from '../../infra/event-store/projection.ts'
import { webhookEventId } from '../../infra/ids.ts'
import { type Part, runTogether, unnest } from '../../infra/postgres/arrays.ts'
import type { Tx } from '../../infra/postgres/pool.ts'
import { insertRows, type RowOf, storable } from '../../infra/postgres/table.ts'
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
  type FoundEvent,
  linkedVisitor,
  type ScoredEvent,
  saveTexts,
  upsertVisitors,
  userText,
} from './apply-visitors.ts'
import { eraseSessions } from './erase.ts'
import { handedOffAt, type markColumns, type SessionFacts, sessionFacts } from './facts.ts'
import { factsMigrations, factsTriggers, notesSetting } from './facts-notes.ts'
import { deleteHours, sessionHours } from './hours.ts'
import { comparedRows, createSessionsPrune } from './prune.ts'
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

/** One projection, so that a session and its visitor appear together. */
export const sessionsProjection: Projection = {
  name: 'sessions',
  version: 4,
  topics: [eventTopics.SessionScored, eventTopics.VisitorErased],
  tables: tables.map(({ name }) => name),
  views: { session_facts: sessionFactsView },
  migrations: [analystsMigrations, factsMigrations],
  ddl: tables.map(({ ddl }) => ddl).join('') + decisionStorage + sessionApplyIndexes,
  setting: notesSetting,
  indexes: sessionReadIndexes + factsTriggers,
  appliedIn: [decisions.name, clientUserChanges.name, sessionMarks.name],
  apply,
  // A visitor's row is made anew of decisions in all partitions.
  isExclusive: isReassignment,
  createPrune: createSessionsPrune,
  erase: eraseSessions,
  comparedRows,
  subjectsOf: (events) =>
    events.flatMap(({ type, data }) => (type === 'SessionScored' ? [data.event_id] : [])),
}

// One partition has all of a session's events, so the offset says which decision is the latest. A visitor's
// sessions are in many partitions, so there the evaluation time says it.
async function apply(tx: Tx, all: RecordedEvent[]): Promise<Part[]> {
  const events = all.filter(({ isErased }) => !isErased)
  const changes = events.filter(isClientUserEvent)
  const marks = events.filter(isMarkEvent)
  const scored = await writeUpToLastReassignment(tx, events)
  if (changes.length === 0 && marks.length === 0) return scoredWrites(scored)
  // They change the sessions that the decisions make.
  await runTogether(tx, scoredWrites(scored))
  await applyMarks(tx, marks)
  return clientUserWrites(changes)
}

// A reassignment changes rows of the decisions before it, and no other. Returns the decisions after the last one.
async function writeUpToLastReassignment(tx: Tx, events: RecordedEvent[]): Promise<ScoredEvent[]> {
  let [scored, reassignments]: [ScoredEvent[], ReassignmentEvent[]] = [[], []]
  async function write(): Promise<void> {
    if (reassignments.length === 0) return
    await runTogether(tx, scoredWrites(scored))
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

function scoredWrites(scored: ScoredEvent[]): Part[] {
  const textsOf = createRequestTexts()
  const found = scored.map((event) => ({ ...event, texts: textsOf(event.data) }))
  if (found.length === 0) return []
  return [
    ...insertRows(decisions, found.map(decisionRow), { areNew: true }),
    { as: 'put_sessions', at: (first) => upsertSessions(found, first) },
    deleteHours(found.map(({ data }) => data)),
    ...upsertVisitors(found),
    ...insertRows(sessionEvents, found.flatMap(sessionEventRows)),
    ...saveTexts(found.flatMap(({ texts }) => Object.values(texts))),
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

// The first decision of a type counts: ids of events follow from type and session.
function sessionEventRows({ data }: ScoredEvent): RowOf<typeof sessionEvents>[] {
  const { organization_id, environment, evaluated_at: created_at, event_id: decision_id } = data
  const about = {
    organization_id,
    environment,
    created_at,
    decision_id,
    visitor: null,
    session_id: null,
  }
  return eventTypesOf(data).map((type) => ({
    id: webhookEventId(type, data.session_id),
    type,
    ...about,
  }))
}

export function eventTypesOf({ visitor, is_provisional }: SessionScored): SessionEventType[] {
  return [
    ...(visitor ? (['session.fingerprint.calculated'] as const) : []),
    ...(is_provisional ? [] : (['session.result.persisted'] as const)),
  ]
}

interface Latest extends Pick<SessionFacts, 'handed_off_at'> {
  event: FoundEvent
  first: FoundEvent
}

const sessionColumns = sessions.columnsWithout('client_user_id', 'user_text', ...markNames)
type SessionRow = Omit<
  RowOf<typeof sessions>,
  'client_user_id' | 'user_text' | keyof typeof markColumns
>
const unchanged = ['session_id', 'organization_id', 'environment', 'created_at']
// A session stays handed off, whatever asks for later decisions.
const lasting = ['handed_off_at']
const replaced = sessionColumns
  .filter(({ name }) => !unchanged.includes(name))
  .map(
    ({ name }) =>
      `${name} = ${lasting.includes(name) ? `coalesce(excluded.${name}, s.${name})` : `excluded.${name}`}`,
  )

// `found` are in offset order.
function upsertSessions(found: FoundEvent[], first: number) {
  const { names, source, values } = unnest(
    sessionColumns,
    latestBySession(found).map(sessionRow),
    first,
  )
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

function latestBySession(found: FoundEvent[]): Latest[] {
  const latest = new Map<string, Latest>()
  for (const event of found) {
    const known = latest.get(event.data.session_id)
    const handed_off_at = handedOffAt(event.data) ?? known?.handed_off_at ?? null
    latest.set(event.data.session_id, { event, first: known?.first ?? event, handed_off_at })
  }
  return [...latest.values()]
}

function sessionRow({ event, first, handed_off_at }: Latest): SessionRow {
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

function clientUserWrites(events: ClientUserEvent[]): Part[] {
  if (events.length === 0) return []
  const last = new Map(events.map((event) => [event.data.session_id, event]))
  return [
    { as: 'update_client_users', at: (first) => updateClientUsers([...last.values()], first) },
    ...insertRows(clientUserChanges, events.map(changeRow)),
    // Texts of all events are saved, because the result must not depend on how events were cut into batches.
    ...saveTexts(events.flatMap((event) => userText(event) ?? [])),
  ]
}

function changeRow(event: ClientUserEvent): RowOf<typeof clientUserChanges> {
  const { event_id, session_id } = event.data
  const user = event.type === 'ClientUserAttached' ? storable(event.data.client_user_id) : null
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
