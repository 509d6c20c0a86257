import { domainToUnicode } from 'node:url'
import type { RecordedEvent } from '../../infra/event-store/codec.ts'
import { type Part, unnest } from '../../infra/postgres/arrays.ts'
import { type RowOf, searchable } from '../../infra/postgres/table.ts'
import { isPlainText } from '../../infra/text.ts'
import type { SessionScored } from '../../schemas/events.ts'
import type { ScoredEvent } from './apply-visitors.ts'
import { searchTexts } from './tables.ts'

const memberNames = [
  'request',
  'highlights',
  'attribution',
  'web_bot_auth',
  'network',
  'runtime_integrity',
  'connection_fingerprint',
  'browser',
  'device',
  'analysis_coverage',
  'signals_fired',
  'client_telemetry',
  'native_runtime_integrity',
  'native_app',
  'native_carrier',
  'native_motion_print',
  'device_identity',
  'install_id',
] as const satisfies (keyof SessionScored)[]

/** A later version of the event brought it. Nothing is stored for events of before, so a rebuild stores the same. */
const laterName = 'evidence' satisfies keyof SessionScored

type MemberName = (typeof memberNames)[number] | typeof laterName

export interface StoredDetail {
  /** The JSON text. Most members are only handed on: parsing 5 KB would cost more than the rest of an answer. */
  json(name: MemberName): string
  value<Name extends MemberName>(name: Name): SessionScored[Name]
}

/** A JSON object of the members as the event has them, one a line. */
export function writeDetail(data: SessionScored): string {
  const names: MemberName[] = data[laterName] === null ? [...memberNames] : [...memberNames, laterName]
  const lines = names.map((name) => `"${name}":${JSON.stringify(data[name])}`)
  return `{\n${lines.join(',\n')}\n}`
}

export function readDetail(text: string): StoredDetail {
  // JSON escapes a line break inside a string, so each one here ends a member.
  const lines = text.split('\n')
  const json = (name: MemberName) => {
    const line = lines[name === laterName ? memberNames.length + 1 : memberNames.indexOf(name) + 1]
    const start = `"${name}":`
    if (name === laterName && line === '}') return 'null'
    if (!line?.startsWith(start)) throw new Error(`a stored session has no ${name}`)
    return line.slice(start.length, line.endsWith(',') ? -1 : undefined)
  }
  return { json, value: (name) => JSON.parse(json(name)) }
}

export type ClientUserEvent = Extract<RecordedEvent, { type: 'ClientUserAttached' | 'ClientUserCleared' }>

export function sessionTexts({ data, position }: ScoredEvent): RowOf<typeof searchTexts>[] {
  const { session_id, organization_id, environment, event_id, evaluated_at, visitor } = data
  const { url, user_agent, ip_address } = data.request
  const about = { organization_id, environment, event_id }
  const visitorId = visitor?.id ?? null
  const text = searchable(session_id, visitorId, ...searchedForms(url), user_agent, ip_address)
  const session = {
    ...about,
    subject_id: session_id,
    part: 'request',
    version: position.offset,
    text,
  } as const
  if (!visitor) return [session]
  const seen = searchable(visitor.id, user_agent, ip_address)
  return [
    session,
    { ...about, subject_id: visitor.id, part: 'visitor', version: evaluated_at, text: seen } as const,
  ]
}

/** The result is the same in whatever order partitions come. */
export function saveTexts(rows: RowOf<typeof searchTexts>[]): Part[] {
  const newest = new Map<string, RowOf<typeof searchTexts>>()
  for (const row of rows) {
    const key = `${row.organization_id} ${row.environment} ${row.subject_id} ${row.part}`
    const known = newest.get(key)
    if (!known || isNewer(row, known)) newest.set(key, row)
  }
  if (newest.size === 0) return []
  return [{ as: 'put_texts', at: (first) => upsertTexts([...newest.values()], first) }]
}

function upsertTexts(rows: RowOf<typeof searchTexts>[], first: number) {
  const { names, source, values } = unnest(searchTexts.columns, rows, first)
  // Rows are locked in the order of their key: partitions applied side by side cannot deadlock.
  const text = `insert into search_texts as t (${names}) select * from ${source} as i (${names}) order by ${searchTexts.key}
    on conflict (${searchTexts.key}) do update
      set version = excluded.version, event_id = excluded.event_id, text = excluded.text
      where (excluded.version, excluded.event_id) > (t.version, t.event_id)`
  return { text, values }
}

function isNewer(a: RowOf<typeof searchTexts>, b: RowOf<typeof searchTexts>): boolean {
  return a.version === b.version ? a.event_id > b.event_id : a.version > b.version
}

export function userText({ data, type, position }: ClientUserEvent): RowOf<typeof searchTexts> {
  const { session_id: subject_id, organization_id, environment, event_id } = data
  const text = searchable(type === 'ClientUserAttached' ? data.client_user_id : null)
  return { organization_id, environment, subject_id, part: 'user', version: position.offset, event_id, text }
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

// As it was where it is not UTF-8, or would break the line.
function decoded(escapes: string): string {
  try {
    const text = decodeURIComponent(escapes)
    return isPlainText(text) ? text : escapes
  } catch {
    return escapes
  }
}
