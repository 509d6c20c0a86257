import { hash } from 'node:crypto'
import { domainToUnicode } from 'node:url'
import type { RecordedEvent } from '../../infra/event-store/event.ts'
import { type Part, unnest } from '../../infra/postgres/arrays.ts'
import { type RowOf, searchable, writeRows } from '../../infra/postgres/table.ts'
import { isPlainText } from '../../infra/text.ts'
import type { SessionScored, VisitorLink } from '../../schemas/events.ts'
import type { DataScope } from './scope.ts'
import { type LinkedVisitor, searchTexts, visitorSessions, visitors } from './tables.ts'

export type ScoredEvent = Extract<RecordedEvent, { type: 'SessionScored' }>

/** With what searches find it by. */
export type FoundEvent = ScoredEvent & { texts: RequestTexts }

type Seen = Pick<FoundEvent, 'data' | 'texts'>

interface Sighting extends Seen {
  visitor: VisitorLink
}

interface Visit {
  first: number
  last: number
  latest: Sighting
}

const visitColumns = visitors.columnsWithout('seen_count')
const aggregated = ['organization_id', 'environment', 'visitor_id', 'first_seen_at', 'last_seen_at']
// Every column compares the old row, so all of them come from the same event.
const newest = visitColumns
  .filter(({ name }) => !aggregated.includes(name))
  .map(
    ({ name }) =>
      `${name} = case when (excluded.evaluated_at, excluded.event_id) > (v.evaluated_at, v.event_id)
       then excluded.${name} else v.${name} end`,
  )

/** The result is the same in whatever order partitions come. */
export function upsertVisitors(fresh: Seen[]): Part[] {
  const sightings = fresh.flatMap((event) =>
    event.data.visitor
      ? [{ data: event.data, texts: event.texts, visitor: event.data.visitor }]
      : [],
  )
  if (sightings.length === 0) return []
  return [
    ...insertLinks(sightings),
    { as: 'put_visitors', at: (first) => upsertVisits(visitsOf(sightings), first) },
  ]
}

const { key } = visitors

function insertLinks(sightings: Sighting[]): Part[] {
  return writeRows(visitorSessions, {
    as: 'put_links',
    columns: visitorSessions.columns,
    rows: sightings.map(linkRow),
    conflict: `on conflict do nothing returning ${key}`,
  })
}

function upsertVisits(visits: Visit[], first: number) {
  const { names, source, values } = unnest(visitColumns, visits.map(visitorRow), first)
  // Rows are locked in the order of their key: partitions applied side by side cannot deadlock.
  const text = `insert into visitors as v (${names}, seen_count)
    select visit.*, coalesce(seen_count, 0) from ${source} as visit (${names})
    left join (select ${key}, count(*) as seen_count from put_links group by ${key}) counts using (${key}) order by ${key}
    on conflict (${key}) do update set ${newest.join(', ')},
      first_seen_at = least(v.first_seen_at, excluded.first_seen_at),
      last_seen_at = greatest(v.last_seen_at, excluded.last_seen_at),
      seen_count = v.seen_count + excluded.seen_count`
  return { text, values }
}

function linkRow({ data, visitor }: Sighting): RowOf<typeof visitorSessions> {
  const { organization_id, environment, session_id } = data
  return { organization_id, environment, visitor_id: visitor.id, session_id }
}

export function visitorRow({
  first,
  last,
  latest: { data, visitor, texts },
}: Visit): RowOf<typeof visitors> {
  const { organization_id, environment, event_id, evaluated_at, request } = data
  const { user_agent, ip_address } = request
  const { id: visitor_id, storage, anchors, vector } = visitor
  return {
    organization_id,
    environment,
    visitor_id,
    first_seen_at: first,
    last_seen_at: last,
    // Postgres counts the new ones.
    seen_count: 0,
    event_id,
    evaluated_at,
    user_agent,
    ip_address,
    storage,
    anchors,
    vector,
    agent_text: texts.agent.id,
    address_text: texts.address.id,
  }
}

export function linkedVisitor(visitor: VisitorLink | null): LinkedVisitor | null {
  if (!visitor) return null
  const { id, confidence, identified_at, method, basis } = visitor
  return { id, confidence, identified_at, method, basis }
}

function visitsOf(sightings: Sighting[]): Visit[] {
  const visits = new Map<string, Visit>()
  for (const sighting of sightings) {
    const { organization_id, environment, observed_at: at } = sighting.data
    const key = `${organization_id} ${environment} ${sighting.visitor.id}`
    const known = visits.get(key)
    visits.set(key, {
      first: Math.min(known?.first ?? at, at),
      last: Math.max(known?.last ?? at, at),
      latest: known && isNewer(known.latest, sighting) ? known.latest : sighting,
    })
  }
  return [...visits.values()]
}

function isNewer({ data: a }: Sighting, { data: b }: Sighting): boolean {
  return a.evaluated_at === b.evaluated_at
    ? a.event_id > b.event_id
    : a.evaluated_at > b.evaluated_at
}

export type ClientUserEvent = Extract<
  RecordedEvent,
  { type: 'ClientUserAttached' | 'ClientUserCleared' }
>

type SearchText = RowOf<typeof searchTexts>
type Scope = Pick<SearchText, 'organization_id' | 'environment'>

// The same text of a scope has one id, and is stored once.
function textOf({ organization_id, environment }: Scope, ...parts: string[]): SearchText {
  const text = searchable(...parts)
  const id = hash('sha256', [organization_id, environment, text].join('\0'), 'buffer').subarray(
    0,
    12,
  )
  return { id, organization_id, environment, text }
}

export interface RequestTexts {
  page: SearchText
  agent: SearchText
  address: SearchText
}

type Requested = Pick<SessionScored, 'request' | keyof Scope>

export const requestTexts = (data: Requested): RequestTexts => createRequestTexts()(data)

/** For many decisions, of which most have a page, an agent and an address that others of them have. */
export function createRequestTexts(): (data: Requested) => RequestTexts {
  const made = new Map<string, SearchText>()

  function once(kind: string, text: string, make: () => SearchText): SearchText {
    const key = `${kind} ${text}`
    const known = made.get(key) ?? make()
    made.set(key, known)
    return known
  }

  return (data) => {
    const { url, user_agent, ip_address } = data.request
    const scope = `${data.organization_id} ${data.environment}`
    return {
      page: once(`${scope} page`, url, () => textOf(data, ...searchedForms(url))),
      agent: once(scope, user_agent, () => textOf(data, user_agent)),
      address: once(scope, ip_address, () => textOf(data, ip_address)),
    }
  }
}

export function userText({ data, type }: ClientUserEvent): SearchText | null {
  return type === 'ClientUserAttached' ? textOf(data, data.client_user_id) : null
}

/** Where changes of a session's user refer to it. */
export function userTextId(
  { organizationId, environment }: DataScope,
  clientUserId: string,
): Buffer {
  return textOf({ organization_id: organizationId, environment }, clientUserId).id
}

export function saveTexts(texts: SearchText[]): Part[] {
  const distinct = [...new Map(texts.map((text) => [text.id.toString('hex'), text])).values()]
  const { columns } = searchTexts
  return writeRows(searchTexts, {
    as: 'put_texts',
    columns,
    rows: distinct,
    ordered: true,
    conflict: 'on conflict do nothing',
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
  return hostname.includes('xn--')
    ? url.replace(hostname, domainToUnicode(hostname) || hostname)
    : url
}

// As it was where it is not UTF-8, or would break the line.
function decoded(escapes: string): string {
  try {
    const text = decodeURIComponent(escapes)
    return isPlainText(text) ? text : escapes
  } catch {
    return escapes
  }
}
