import type { Db } from '../../../infra/postgres/pool.ts'
import type { Environment, ResolutionMethod } from '../../../schemas/events.ts'
import { type VisitorKeys, visitorKeysOf } from './keys.ts'
import type { Candidates, KnownVisitor } from './match.ts'
import type { Profile } from './profile.ts'
import { links } from './tables.ts'

/** The stored facts about a session's link to its visitor. Times are epoch milliseconds. */
export interface LinkFacts {
  session_id: string
  organization_id: string
  environment: Environment
  visitor_id: string
  /** Method of the last correction, or of the decision if there was none. */
  method: ResolutionMethod | null
  opened_at: number
  linked_at: number
  profile: Profile | null
  /** Keys that find candidates, without continuity keys. */
  keys: VisitorKeys
}

/** Visitors as they were before a session was linked, reconstructed from the links that still exist. */
export interface EarlierVisitors extends Candidates {
  byId(id: string): KnownVisitor | undefined
}

export async function findLinkFacts(db: Db, sessionId: string): Promise<LinkFacts | undefined> {
  const { rows } = await db.query<Omit<LinkFacts, 'keys'> & { storage_key: string; keys: string }>({
    name: 'find-link',
    text: `select ${links.selectWithout('l', 'apart_from', 'merged_at')},
        s.created_at::float8 as opened_at, s.visitor::json ->> 'method' as method
      from scoring.links l join read.sessions s using (session_id) where l.session_id = $1`,
    values: [sessionId],
  })
  const [row] = rows
  if (!row) return undefined
  const { storage_key, keys: stored, ...facts } = row
  const keys = visitorKeysOf(
    { ...facts, presented: [], issued: null, install: null },
    facts.profile,
  )
  // Continuity keys are stored first and one of them is the storage key, unless the app has an install id.
  const isInstallKey = !stored.startsWith(storage_key) && stored.includes(storage_key)
  return { ...facts, keys: { ...keys, install: isInstallKey ? storage_key : null } }
}

const limits = {
  /** Visitors per key, as in scoring. */
  visitors: 10,
  /** Visitors per key that are checked for a first session before the link. */
  searched: 1000,
  /** Newest sessions that a visitor is reconstructed from. */
  sessions: 200,
  /** Visitors with more sessions are skipped, because finding the newest reads all of them. */
  maxSessions: 5000,
}

const earlierVisitors = `
  with candidates as (
    select visitor_id from unnest($1::bytea[]) as matched (key) cross join lateral (
      select visitor_id from (
        select visitor_id from scoring.visitor_keys k where k.key = matched.key
        order by visitor_id limit ${limits.searched}
      ) k join scoring.visitors using (visitor_id)
      where first_seen_at < $2 order by visitor_id limit ${limits.visitors}
    ) k union select $4
  )
  select v.visitor_id as id, v.first_seen_at::float8, v.apart_from, null as storage_key, seen.*
  from candidates join scoring.visitors v using (visitor_id) cross join lateral (
    select max(linked_at)::float8 as last_seen_at, count(*)::integer as sessions,
      (array_agg(profile order by linked_at desc, session_id desc) filter (where profile is not null))[1]::json as profile,
      encode(string_agg(distinct keys, ''), 'hex') as keys
    from (
      select * from scoring.links l where l.visitor_id = v.visitor_id and linked_at < $2 and session_id <> $3
      order by linked_at desc, session_id desc limit ${limits.sessions}
    ) l
  ) seen
  where v.sessions <= ${limits.maxSessions} and seen.sessions > 0 order by v.visitor_id`

export async function findEarlierVisitors(db: Db, link: LinkFacts): Promise<EarlierVisitors> {
  const { install, matchKeys } = link.keys
  const keys = [...matchKeys.map(({ key }) => key), ...(install === null ? [] : [install])]
  // A row's `keys` are the visitor's hexadecimal keys, concatenated.
  const { rows } = await db.query<KnownVisitor & { keys: string }>({
    name: 'find-earlier-visitors',
    text: earlierVisitors,
    values: [
      keys.map((key) => Buffer.from(key, 'hex')),
      link.linked_at,
      link.session_id,
      link.visitor_id,
    ],
  })
  const candidates = rows.map(({ keys: concatenated, ...visitor }) => ({ visitor, concatenated }))
  const visitorsWith = (key: string) =>
    candidates.filter(({ concatenated }) => concatenated.includes(key)).slice(0, limits.visitors)
  return {
    byKey: (key) => visitorsWith(key).map(({ visitor }) => visitor),
    byId: (id) => candidates.find(({ visitor }) => visitor.id === id)?.visitor,
  }
}
