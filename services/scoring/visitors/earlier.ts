import type { Db } from '../../../infra/postgres/pool.ts'
import type { Environment, ResolutionMethod } from '../../../schemas/events.ts'
import { type VisitorKeys, visitorKeysOf } from './keys.ts'
import type { Candidates, KnownVisitor } from './match.ts'
import type { Profile } from './profile.ts'

/** What is known of how a session came to its visitor. Times are epoch milliseconds. */
export interface LinkFacts {
  session_id: string
  organization_id: string
  environment: Environment
  visitor_id: string
  /** As recorded: the last correction, else the decision. */
  method: ResolutionMethod | null
  opened_at: number
  linked_at: number
  profile: Profile | null
  /** Those that candidates are compared by. */
  keys: VisitorKeys
}

/** Visitors as they were before a session was linked, as far as is known today. */
export interface EarlierVisitors extends Candidates {
  byId(id: string): KnownVisitor | undefined
}

interface LinkRow extends Omit<LinkFacts, 'profile' | 'keys'> {
  lineage: string
  profile: string | null
  keys: string
}

export async function findLinkFacts(db: Db, sessionId: string): Promise<LinkFacts | undefined> {
  const { rows } = await db.query<LinkRow>({
    name: 'find-link',
    text: `select l.session_id, l.organization_id, l.environment, l.visitor_id, l.linked_at::float8, l.lineage, l.profile,
        encode(l.keys, 'hex') as keys, s.created_at::float8 as opened_at, s.visitor::json ->> 'method' as method
      from scoring.links l join read.sessions s using (session_id) where l.session_id = $1`,
    values: [sessionId],
  })
  const [row] = rows
  if (!row) return undefined
  const { lineage, keys, ...facts } = row
  const profile: Profile | null = facts.profile === null ? null : JSON.parse(facts.profile)
  return { ...facts, profile, keys: comparedKeys({ ...facts, profile, lineage, all: keys }) }
}

interface StoredKeys extends Pick<LinkFacts, 'organization_id' | 'environment' | 'profile'> {
  lineage: string
  // In hexadecimal, one behind the other.
  all: string
}

// Ids that the client kept come first, and give the lineage its name, unless an app has an install id.
function comparedKeys({ lineage, all, profile, ...scope }: StoredKeys): VisitorKeys {
  const nothing = { presented: [], issued: null, install: null }
  const keys = visitorKeysOf({ ...scope, ...nothing }, profile)
  const isInstall = !all.startsWith(lineage) && all.includes(lineage)
  return { ...keys, install: isInstall ? lineage : null }
}

const limits = {
  /** As many as scoring looks up. */
  visitors: 10,
  /** Of a key's visitors, among which the earlier ones are looked for. */
  searched: 1000,
  /** A visitor's newest ones say what it was like. */
  sessions: 200,
  /** All sessions of a visitor are read to find the newest. */
  mostSessions: 5000,
}

const earlierVisitors = `
  with found as (
    select visitor_id from unnest($1::bytea[]) as wanted (key) cross join lateral (
      select visitor_id from (
        select visitor_id from scoring.visitor_keys k where k.key = wanted.key
        order by visitor_id limit ${limits.searched}
      ) k join scoring.visitors using (visitor_id)
      where first_seen_at < $2 order by visitor_id limit ${limits.visitors}
    ) k union select $4
  )
  select v.visitor_id as id, v.first_seen_at::float8, v.apart_from, seen.*
  from found join scoring.visitors v using (visitor_id) cross join lateral (
    select max(linked_at)::float8 as last_seen_at, count(*)::integer as sessions,
      (array_agg(profile order by linked_at desc, session_id desc) filter (where profile is not null))[1] as profile,
      encode(string_agg(distinct keys, ''), 'hex') as keys
    from (
      select * from scoring.links l where l.visitor_id = v.visitor_id and linked_at < $2 and session_id <> $3
      order by linked_at desc, session_id desc limit ${limits.sessions}
    ) l
  ) seen
  where v.sessions <= ${limits.mostSessions} and seen.sessions > 0 order by v.visitor_id`

interface EarlierRow
  extends Pick<KnownVisitor, 'id' | 'first_seen_at' | 'last_seen_at' | 'sessions' | 'apart_from'> {
  profile: string | null
  /** In hexadecimal, one behind the other. */
  keys: string
}

export async function findEarlierVisitors(db: Db, link: LinkFacts): Promise<EarlierVisitors> {
  const { install, looks } = link.keys
  const wanted = [...looks.map(({ key }) => key), ...(install === null ? [] : [install])]
  const { rows } = await db.query<EarlierRow>({
    name: 'find-earlier-visitors',
    text: earlierVisitors,
    values: [wanted.map((key) => Buffer.from(key, 'hex')), link.linked_at, link.session_id, link.visitor_id],
  })
  const found = rows.map(({ profile, keys, ...row }) => {
    const visitor: KnownVisitor = {
      ...row,
      // Who is compared with is the same whatever storage it has.
      lineage: null,
      profile: profile === null ? null : JSON.parse(profile),
    }
    return { visitor, keys }
  })
  const isFoundBy = (key: string) => found.filter(({ keys }) => keys.includes(key)).slice(0, limits.visitors)
  return {
    byKey: (key) => isFoundBy(key).map(({ visitor }) => visitor),
    byId: (id) => found.find(({ visitor }) => visitor.id === id)?.visitor,
  }
}
