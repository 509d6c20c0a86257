import { isLegacyId, isPartOfId } from '../../infra/ids.ts'

/** SQL condition that the session `s` is in the scope of parameters $1 and $2. */
export const inScope = 's.organization_id = $1 and s.environment = $2'
export const newestFirst = 'order by s.evaluated_at desc, s.session_id desc'

/** SQL direction of a list, and the operator that compares a row with the one before it. */
export type TimeOrder = { direction: 'asc'; isAfter: '>' } | { direction: 'desc'; isAfter: '<' }

const firstCount = 500

/** Returns a subquery for the first sessions of the scope, in this order, that meet the conditions. */
export const firstSessions = (conditions: string[], orderBy: string): string =>
  `(select * from read.sessions s where ${[inScope, ...conditions].join(' and ')} ${orderBy} limit ${firstCount})`

/** SQL condition that a text or id of the session `s` matches the pattern $4. */
export const hasText = `(s.session_id like $4 or s.visitor_id like $4
  or exists (select from read.search_texts t
    where t.id in (s.page_text, s.agent_text, s.address_text, s.user_text) and t.text like $4)
  or exists (select from read.decisions d where d.session_id = s.session_id and d.event_id like $4))`

const sessionTexts = ['page_text', 'agent_text', 'address_text', 'user_text']

/** Returns the same condition as `hasText` in a form that uses the indexes. */
export function textMatch(search: string): string {
  const bySession = keySelects(search, {
    table: 'sessions',
    key: 'session_id',
    pattern: '$4',
    texts: sessionTexts,
    ids: ['session_id', 'visitor_id'],
  })
  const byDecision = {
    table: 'decisions',
    key: 'session_id',
    pattern: '$4',
    texts: [],
    ids: ['event_id'],
  }
  return `s.session_id in (${[...bySession, ...keySelects(search, byDecision)].join(' union ')})`
}

interface SearchedTable {
  table: string
  key: string
  /** Placeholder of the `like` pattern. */
  pattern: string
  /** Columns that refer to search texts. */
  texts: string[]
  ids: string[]
}

/**
 * Returns selects for the keys of rows in the scope ($1 and $2) with a matching text or id. Substrings of ids have no
 * index, so if the search can be part of an id, all ids of the scope are read.
 */
export function keySelects(search: string, columns: SearchedTable): string[] {
  const { table, key, pattern, texts, ids } = columns
  const scoped = 'organization_id = $1 and environment = $2'
  const withText = `select id from read.search_texts where ${scoped} and text like ${pattern}`
  const byText = texts.map(
    (column) => `select ${key} from read.${table} where ${column} in (${withText})`,
  )
  if (!isPartOfId(search)) return byText
  const hasPart = ids.map((column) => `${column} like ${pattern}`).join(' or ')
  return [...byText, `select ${key} from read.${table} where ${scoped} and (${hasPart})`]
}

/** Returns an SQL condition for a complete id in lower case ($4); undefined for any other search. */
export function exactMatch(id: string): string | undefined {
  const sessionOfEvent = '(select d.session_id from read.decisions d where d.event_id = $4)'
  if (id.startsWith('sid_')) return 's.session_id = $4'
  if (id.startsWith('evt_')) return `s.session_id = ${sessionOfEvent}`
  if (id.startsWith('vid_')) return 's.visitor_id = $4'
  // A legacy id can belong to an event or a session. ORing two conditions would read every session of the scope.
  return isLegacyId(id) ? `s.session_id = coalesce(${sessionOfEvent}, $4)` : undefined
}
