import { hash } from 'node:crypto'
import { domainToUnicode } from 'node:url'
import type { RecordedEvent } from '../../infra/event-store/event.ts'
import { type Cte, unnest } from '../../infra/postgres/arrays.ts'
import { normalizeForSearch, type RowOf, writeRows } from '../../infra/postgres/table.ts'
import { isPlainText } from '../../infra/text.ts'
import type { SessionScored, VisitorLink } from '../../schemas/events.ts'
import type { DataScope } from './scope.ts'
import { type LinkedVisitor, searchTexts, visitorSessions, visitors } from './tables.ts'

export type ScoredEvent = Extract<RecordedEvent, { type: 'SessionScored' }>

/** Decision with the search texts of its session. */
export type SearchableEvent = ScoredEvent & { texts: RequestTexts }

interface Sighting extends Pick<SearchableEvent, 'data' | 'texts'> {
  visitor: VisitorLink
}

interface Visit {
  first: number
  last: number
  latest: Sighting
}

const visitColumns = visitors.columnsWithout('seen_count')
const aggregatedColumns = [
  'organization_id',
  'environment',
  'visitor_id',
  'first_seen_at',
  'last_seen_at',
]
// All columns use the same comparison, so that they come from the same event.
const newestAssignments = visitColumns
  .filter(({ name }) => !aggregatedColumns.includes(name))
  .map(
    ({ name }) =>
      `${name} = case when (excluded.evaluated_at, excluded.event_id) > (v.evaluated_at, v.event_id)
       then excluded.${name} else v.${name} end`,
  )

/** Returns statements whose result does not depend on the order in which partitions are applied. */
export function upsertVisitors(events: SearchableEvent[]): Cte[] {
  const sightings = events.flatMap((event) =>
    event.data.visitor
      ? [{ data: event.data, texts: event.texts, visitor: event.data.visitor }]
      : [],
  )
  if (sightings.length === 0) return []
  return [
    ...insertLinks(sightings),
    { as: 'put_visitors', sql: (first) => upsertVisits(visitsOf(sightings), first) },
  ]
}

const { key } = visitors

function insertLinks(sightings: Sighting[]): Cte[] {
  return writeRows(visitorSessions, {
    as: 'put_links',
    columns: visitorSessions.columns,
    rows: sightings.map(linkRow),
    conflict: `on conflict do nothing returning ${key}`,
  })
}

function upsertVisits(visits: Visit[], first: number) {
  const { names, source, values } = unnest(visitColumns, visits.map(visitorRow), first)
  // Locks rows in key order, so that partitions applied in parallel cannot deadlock.
  const text = `insert into visitors as v (${names}, seen_count)
    select visit.*, coalesce(seen_count, 0) from ${source} as visit (${names})
    left join (select ${key}, count(*) as seen_count from put_links group by ${key}) counts using (${key}) order by ${key}
    on conflict (${key}) do update set ${newestAssignments.join(', ')},
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
    // The caller or the statement sets the count.
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
    const visit = visits.get(key)
    visits.set(key, {
      first: Math.min(visit?.first ?? at, at),
      last: Math.max(visit?.last ?? at, at),
      latest: visit && isNewer(visit.latest, sighting) ? visit.latest : sighting,
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

function textOf({ organization_id, environment }: Scope, ...parts: string[]): SearchText {
  const text = normalizeForSearch(...parts)
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

type TextSource = Pick<SessionScored, 'request' | keyof Scope>

export const requestTexts = (data: TextSource): RequestTexts => createRequestTexts()(data)

/** Returns `requestTexts` with a cache, because most decisions share their page, user agent and address with others. */
export function createRequestTexts(): (data: TextSource) => RequestTexts {
  const cache = new Map<string, SearchText>()

  function cached(kind: string, value: string, create: () => SearchText): SearchText {
    const key = `${kind} ${value}`
    const text = cache.get(key) ?? create()
    cache.set(key, text)
    return text
  }

  return (data) => {
    const { url, user_agent, ip_address } = data.request
    const scope = `${data.organization_id} ${data.environment}`
    return {
      page: cached(`${scope} page`, url, () => textOf(data, ...searchableForms(url))),
      agent: cached(scope, user_agent, () => textOf(data, user_agent)),
      address: cached(scope, ip_address, () => textOf(data, ip_address)),
    }
  }
}

export function userText({ data, type }: ClientUserEvent): SearchText | null {
  return type === 'ClientUserAttached' ? textOf(data, data.client_user_id) : null
}

/** Returns the id of the search text for a client user id. */
export function userTextId(
  { organizationId, environment }: DataScope,
  clientUserId: string,
): Buffer {
  return textOf({ organization_id: organizationId, environment }, clientUserId).id
}

export function saveTexts(texts: SearchText[]): Cte[] {
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

/** Returns the URL as stored and in readable forms, so that a search for any of them matches. */
export function searchableForms(url: string): string[] {
  const readable = withUnicodeHost(url).replace(/(?:%[\da-f]{2})+/gi, decoded)
  // HTML forms encode a space as +.
  return [...new Set([url, readable, readable.replaceAll('+', ' ')])]
}

function withUnicodeHost(url: string): string {
  const { hostname = '' } = URL.parse(url) ?? {}
  return hostname.includes('xn--')
    ? url.replace(hostname, domainToUnicode(hostname) || hostname)
    : url
}

// Returns the escapes unchanged if they are not UTF-8 or encode control characters.
function decoded(escapes: string): string {
  try {
    const text = decodeURIComponent(escapes)
    return isPlainText(text) ? text : escapes
  } catch {
    return escapes
  }
}
