import { isLegacyId, isPartOfId } from '../../infra/ids.ts'
import type { Db } from '../../infra/postgres/pool.ts'

/** SQL condition that the session `s` is in the scope of parameters $1 and $2. */
export const inScope = 's.organization_id = $1 and s.environment = $2'
export const newestFirst = 'order by s.evaluated_at desc, s.session_id desc'

/** SQL direction of a list, and the operator that compares a row with the one before it. */
export type TimeOrder = { direction: 'asc'; isAfter: '>' } | { direction: 'desc'; isAfter: '<' }

/** SQL conditions and order of sessions in the scope. */
interface SessionRange {
  conditions: string[]
  orderBy: string
}

/** Returns a subquery for the first sessions of the range. */
export const firstSessions = ({ conditions, orderBy }: SessionRange, count: number): string =>
  `(select * from read.sessions s where ${[inScope, ...conditions].join(' and ')} ${orderBy} limit ${count})`

// Without `offset 0`, Postgres can read all decisions into a hash table first.
const hasId = `(s.session_id like $4 or s.visitor_id like $4
  or exists (select from read.decisions d where d.session_id = s.session_id and d.event_id like $4 offset 0))`

/** SQL condition that a text or id of the session `s` matches the pattern $4. */
export const hasText = `(${hasId} or exists (select from read.search_texts t
  where t.id in (s.page_text, s.agent_text, s.address_text, s.user_text) and t.text like $4))`

const sessionTexts = ['page_text', 'agent_text', 'address_text', 'user_text'] as const

// Bounds the texts, and the sessions by text column, that a search reads through the indexes.
const maxTexts = 5000
export const maxMatches = 1000
// Number of sessions whose ids are compared: parts of ids have no index.
const maxComparedIds = 10_000

/** Returns the ids of the sessions that match the pattern $4; undefined if there are too many. $3 is `maxMatches` + 1. */
export async function findMatches(
  db: Db,
  values: unknown[],
  { search, compared }: { search: string; compared: () => SessionRange },
): Promise<string[] | undefined> {
  const byText = sessionTexts.map(
    (column) => `array(select s.session_id from texts cross join lateral (
      select session_id from read.sessions where ${column} = texts.id offset 0
    ) s limit $3) as ${column}`,
  )
  const byId = isPartOfId(search)
    ? `array(select s.session_id from ${firstSessions(compared(), maxComparedIds)} s where ${hasId} limit $3)`
    : `'{}'::text[]`
  const { rows } = await db.query<
    Record<'ids' | (typeof sessionTexts)[number], string[]> & { texts: number }
  >(
    `with texts as materialized (
       select id from read.search_texts where organization_id = $1 and environment = $2 and text like $4 limit ${maxTexts + 1}
     )
     select (select count(*) from texts)::float8 as texts, ${byText.join()}, ${byId} as ids`,
    values,
  )
  const [{ texts, ...matches } = { texts: 0 }] = rows
  const lists: string[][] = Object.values(matches)
  if (texts > maxTexts || lists.some(({ length }) => length > maxMatches)) return undefined
  return [...new Set(lists.flat())]
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
