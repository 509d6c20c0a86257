import { hash } from 'node:crypto'
import { domainToUnicode } from 'node:url'
import type { RecordedEvent } from '../../infra/event-store/codec.ts'
import { type Part, unnest } from '../../infra/postgres/arrays.ts'
import { type RowOf, searchable } from '../../infra/postgres/table.ts'
import { isPlainText } from '../../infra/text.ts'
import type { SessionScored } from '../../schemas/events.ts'
import { searchTexts } from './tables.ts'

export type ClientUserEvent = Extract<RecordedEvent, { type: 'ClientUserAttached' | 'ClientUserCleared' }>

type SearchText = RowOf<typeof searchTexts>
type Scope = Pick<SearchText, 'organization_id' | 'environment'>

/** The same text of a scope has one id, and is stored once. */
function textOf({ organization_id, environment }: Scope, ...parts: string[]): SearchText {
  const text = searchable(...parts)
  const id = hash('sha256', [organization_id, environment, text].join('\0'), 'buffer').subarray(0, 12)
  return { id, organization_id, environment, text }
}

export interface RequestTexts {
  page: SearchText
  agent: SearchText
  address: SearchText
}

export function requestTexts(data: Pick<SessionScored, 'request' | keyof Scope>): RequestTexts {
  const { url, user_agent, ip_address } = data.request
  return {
    page: textOf(data, ...searchedForms(url)),
    agent: textOf(data, user_agent),
    address: textOf(data, ip_address),
  }
}

export function userText({ data, type }: ClientUserEvent): SearchText | null {
  return type === 'ClientUserAttached' ? textOf(data, data.client_user_id) : null
}

export function saveTexts(texts: SearchText[]): Part[] {
  const distinct = [...new Map(texts.map((text) => [text.id.toString('hex'), text])).values()]
  if (distinct.length === 0) return []
  const at = (first: number) => {
    const { names, source, values } = unnest(searchTexts.columns, distinct, first)
    // In the order of the key: two that write the same ones cannot deadlock.
    const text = `insert into search_texts (${names}) select * from ${source} as i (${names}) order by id
      on conflict do nothing`
    return { text, values }
  }
  return [{ as: 'put_texts', at }]
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
