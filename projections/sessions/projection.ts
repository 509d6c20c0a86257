import { domainToUnicode } from 'node:url'
import type { RecordedEvent } from '../../infra/event-store/codec.ts'
import type { Projection } from '../../infra/event-store/projection.ts'
import { unnest } from '../../infra/postgres/arrays.ts'
import type { Tx } from '../../infra/postgres/pool.ts'
import { insertNewRows, type RowOf, searchable, storable } from '../../infra/postgres/table.ts'
import { isPlainText } from '../../infra/text.ts'
import { eventTopics, type SessionScored } from '../../schemas/events.ts'
import { type ScoredEvent, upsertVisitors } from './apply-visitors.ts'
import { writeDetail } from './detail.ts'
import {
  clientUserChanges,
  decisions,
  type LinkedVisitor,
  searchEventsLength,
  sessionApplyIndexes,
  sessionReadIndexes,
  sessions,
  visitorSessions,
  visitors,
} from './tables.ts'

const tables = [sessions, decisions, clientUserChanges, visitors, visitorSessions]

/** One projection, so that a session and its visitor appear together. */
export const sessionsProjection: Projection = {
  name: 'sessions',
  version: 3,
  topics: [eventTopics.SessionScored],
  tables: tables.map(({ name }) => name),
  ddl: tables.map(({ ddl }) => ddl).join('') + sessionApplyIndexes,
  indexes: sessionReadIndexes,
  apply,
}

type ClientUserEvent = Extract<RecordedEvent, { type: 'ClientUserAttached' | 'ClientUserCleared' }>

/**
 * One partition has all of a session's events, so the offset says which decision is the latest. A visitor's
 * sessions are in many partitions, so there the evaluation time says it.
 */
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
  const fresh = scored.filter(({ data }) => inserted.delete(data.event_id))
  if (fresh.length === 0) return
  await upsertSessions(tx, fresh)
  await upsertVisitors(tx, fresh)
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
  const { request, score_breakdown, signals_fired, attribution, hand_off } = event.data
  const visitor = linkedVisitor(event.data)
  return {
    ...commonColumns(event),
    log_offset: event.position.offset,
    evidence: { request, score_breakdown, visitor, signals_fired, attribution, hand_off },
  }
}

function linkedVisitor({ visitor }: SessionScored): LinkedVisitor | null {
  if (!visitor) return null
  const { id, confidence, identified_at, method, basis } = visitor
  return { id, confidence, identified_at, method, basis }
}

interface Latest {
  event: ScoredEvent
  first: ScoredEvent
  eventIds: string[]
}

const userColumns = { client_user_id: null, search_user: '' }
const sessionColumns = sessions.columnsWithout('client_user_id', 'search_user')
const unchanged = ['session_id', 'organization_id', 'environment', 'created_at', 'search_events']
const replaced = sessionColumns
  .filter(({ name }) => !unchanged.includes(name))
  .map(({ name }) => `${name} = excluded.${name}`)

/** `fresh` are decisions not applied before, in offset order. */
async function upsertSessions(tx: Tx, fresh: ScoredEvent[]): Promise<void> {
  const { names, source, values } = unnest(sessionColumns, latestBySession(fresh).map(sessionRow))
  await tx.query({
    name: 'upsert-sessions',
    // A session that is new here may have been given its client user id already. The end of all event ids is the same
    // however they were divided into batches, so a rebuild finds the same.
    text: `insert into sessions as s (${names}, client_user_id, search_user)
      select i.*, u.client_user_id, coalesce(u.search_user, '') from ${source} as i (${names})
      left join lateral (
        select client_user_id, search_user from client_user_changes c
        where c.session_id = i.session_id order by log_offset desc limit 1
      ) u on true
      on conflict (session_id) do update set ${replaced.join(', ')},
        search_events = right(s.search_events || E'\\n' || excluded.search_events, ${searchEventsLength})`,
    values,
  })
}

function latestBySession(fresh: ScoredEvent[]): Latest[] {
  const latest = new Map<string, Latest>()
  for (const event of fresh) {
    const known = latest.get(event.data.session_id)
    const eventIds = [...(known?.eventIds ?? []), event.data.event_id]
    latest.set(event.data.session_id, { event, first: known?.first ?? event, eventIds })
  }
  return [...latest.values()]
}

function sessionRow({ event, first, eventIds }: Latest): RowOf<typeof sessions> {
  const { data } = event
  const { url, user_agent, ip_address } = data.request
  return {
    ...commonColumns(event),
    ...userColumns,
    created_at: first.data.created_at,
    visitor: linkedVisitor(data),
    detail: writeDetail(data),
    search_request: searchable(
      data.session_id,
      data.visitor?.id ?? null,
      ...searchedForms(url),
      user_agent,
      ip_address,
    ),
    search_events: searchable(...eventIds).slice(-searchEventsLength),
  }
}

async function applyClientUsers(tx: Tx, events: ClientUserEvent[]): Promise<void> {
  const inserted = await insertNewRows(tx, clientUserChanges, events.map(changeRow))
  const last = new Map<string, ClientUserEvent>()
  for (const event of events) if (inserted.delete(event.data.event_id)) last.set(event.data.session_id, event)
  if (last.size > 0) await updateClientUsers(tx, [...last.values()])
}

function changeRow(event: ClientUserEvent): RowOf<typeof clientUserChanges> {
  const { event_id, session_id } = event.data
  const user = event.type === 'ClientUserAttached' ? storable(event.data.client_user_id) : null
  const log_offset = event.position.offset
  return { event_id, session_id, log_offset, client_user_id: user, search_user: searchable(user) }
}

async function updateClientUsers(tx: Tx, changes: ClientUserEvent[]): Promise<void> {
  const columns = clientUserChanges.columnsWithout('event_id', 'log_offset')
  const { names, source, values } = unnest(columns, changes.map(changeRow))
  await tx.query({
    name: 'update-client-users',
    text: `update sessions as s set client_user_id = c.client_user_id, search_user = c.search_user
      from ${source} as c (${names}) where s.session_id = c.session_id`,
    values,
  })
}

/** A page's address as it is stored and, where that differs, as people read and type it: they search for either. */
export function searchedForms(url: string): string[] {
  const read = withUnicodeHost(url).replace(/(?:%[\da-f]{2})+/gi, decoded)
  // Forms write a space as +, and so does whoever searches without encoding.
  return [...new Set([url, read, read.replaceAll('+', ' ')])]
}

function withUnicodeHost(url: string): string {
  const { hostname = '' } = URL.parse(url) ?? {}
  return hostname.includes('xn--') ? url.replace(hostname, domainToUnicode(hostname) || hostname) : url
}

/** As it was where it is not UTF-8, or would break the line. */
function decoded(escapes: string): string {
  try {
    const text = decodeURIComponent(escapes)
    return isPlainText(text) ? text : escapes
  } catch {
    return escapes
  }
}
