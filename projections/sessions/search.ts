import { isLegacyId, isPartOfId } from '../../infra/ids.ts'

/** Conditions on the session `s`, whose scope is $1 and $2. */
export const inScope = 's.organization_id = $1 and s.environment = $2'
export const newestFirst = 'order by s.evaluated_at desc, s.session_id desc'

const newestCount = 500

/** The newest sessions of the scope from a place on, whatever else is searched for; `place` is a condition on them. */
export const newestSessions = (place: string[]): string =>
  `(select * from read.sessions s where ${[inScope, ...place].join(' and ')} ${newestFirst} limit ${newestCount})`

/** The pattern is $4. */
export const hasText = `(s.session_id like $4 or s.visitor_id like $4
  or exists (select from read.search_texts t
    where t.id in (s.page_text, s.agent_text, s.address_text, s.user_text) and t.text like $4)
  or exists (select from read.decisions d where d.session_id = s.session_id and d.event_id like $4))`

const sessionTexts = ['page_text', 'agent_text', 'address_text', 'user_text']

/** The scope is $1 and $2, and the pattern $4. */
export function foundBy(search: string): string {
  const found = selectsOf(search, {
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
  return `s.session_id in (${[...found, ...selectsOf(search, byDecision)].join(' union ')})`
}

interface Searched {
  table: string
  key: string
  /** A parameter: what `like` compares with. */
  pattern: string
  /** Columns with the id of a text. */
  texts: string[]
  ids: string[]
}

/**
 * Selects the keys of rows of which a text, or an id, has the pattern. The scope is $1 and $2. No index has parts of
 * ids, so all ids of the scope are read, where the search may be a part of one.
 */
export function selectsOf(search: string, { table, key, pattern, texts, ids }: Searched): string[] {
  const scoped = 'organization_id = $1 and environment = $2'
  const withText = `select id from read.search_texts where ${scoped} and text like ${pattern}`
  const byText = texts.map(
    (column) => `select ${key} from read.${table} where ${column} in (${withText})`,
  )
  if (!isPartOfId(search)) return byText
  const hasPart = ids.map((column) => `${column} like ${pattern}`).join(' or ')
  return [...byText, `select ${key} from read.${table} where ${scoped} and (${hasPart})`]
}

/** service.md 4.2 rule 2. Ids match whole, in any case. Anything else is a substring of what a session shows: undefined. */
export function exactMatch(id: string): string | undefined {
  const ofEvent = '(select d.session_id from read.decisions d where d.event_id = $4)'
  if (id.startsWith('sid_')) return 's.session_id = $4'
  if (id.startsWith('evt_')) return `s.session_id = ${ofEvent}`
  if (id.startsWith('vid_')) return 's.visitor_id = $4'
  // It may be of an event or a session. Two conditions would read every session of the scope.
  return isLegacyId(id) ? `s.session_id = coalesce(${ofEvent}, $4)` : undefined
}
