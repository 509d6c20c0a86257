import type { Tx } from '../../../infra/postgres/pool.ts'
import {
  reassignedLink,
  type SessionReassignment,
} from '../../../projections/sessions/apply-reassignments.ts'
import type { KnownVisitor } from './match.ts'
import { component, components } from './profile.ts'
import { type LinkedSession, mergedStorages } from './split.ts'
import { knownVisitors, type Link, links, visitorKeys } from './tables.ts'

export async function readLinkedSessions(tx: Tx, visitorId: string): Promise<LinkedSession[]> {
  const { rows } = await tx.query<LinkedSession>(
    `select ${links.select('l', 'session_id', 'storage_key', 'linked_at', 'merged_at')} from scoring.links l
     where visitor_id = $1`,
    [visitorId],
  )
  return rows
}

/** The link of a session to its visitor, and the match keys that the session contributed. */
export interface SessionLink
  extends Omit<Link, 'storage_key' | 'profile' | 'organization_id' | 'environment'> {
  /** Hashes of the compared components, by name. null = nothing was observed. */
  components: Record<string, string | null> | null
  network: string | null
}

export async function readLinks(
  db: Pick<Tx, 'query'>,
  sessionIds: string[],
): Promise<SessionLink[]> {
  type Row = Omit<Link, 'keys'> & { keys: string }
  const { rows } = await db.query<Row>(
    `select ${links.selectWithout('l', 'storage_key', 'organization_id', 'environment')} from scoring.links l
     where session_id = any($1)`,
    [sessionIds],
  )
  return rows.map(({ profile, keys, ...link }) => {
    const hashes = profile && components.map((name) => [name, component(profile, name)])
    return {
      ...link,
      keys: keys.match(/.{32}/g) ?? [],
      components: hashes && Object.fromEntries(hashes),
      network: profile?.network ?? null,
    }
  })
}

/** SQL condition: visitor `v` is within its organization's retention. */
export const isCurrentSql = `v.last_seen_at >= coalesce(
  (select visitors_before from read.data_expirations e where e.organization_id = v.organization_id), 0)`

export type KeyedVisitor = KnownVisitor & { key: string }

/** SQL: the columns of a `KeyedVisitor` from key `k` and visitor `v`. */
export const keyedVisitorColumnsSql = `encode(k.key, 'hex') as key, v.visitor_id as id,
  ${knownVisitors.selectWithout('v', 'visitor_id', 'organization_id', 'environment')}`

/** SQL: rows for `knownVisitors`, aggregated from the links in the table or subquery. */
export const visitorsFromLinksSql = (links: string) => `
  with dated as (
    select *, min(linked_at) over (partition by visitor_id, storage_key) as began,
      max(merged_at) over (partition by visitor_id) as merged
    from ${links}
  ),
  linked as (
    select session_id, visitor_id, organization_id, environment, linked_at, profile, apart_from,
      case when began <= merged then '${mergedStorages}' else storage_key end as storage_key
    from dated
  ),
  storages as (select visitor_id, storage_key, min(linked_at) as began from linked group by visitor_id, storage_key),
  newest as (
    select distinct on (visitor_id) * from storages order by visitor_id, began desc, storage_key desc
  )
  select visitor_id, min(organization_id) as organization_id, min(environment) as environment,
    min(linked_at) as first_seen_at, max(linked_at) as last_seen_at, count(*)::integer as sessions,
    coalesce((array_agg(profile order by linked_at desc, session_id desc) filter (where profile is not null))[1],
      'null') as profile,
    newest.storage_key,
    max(apart_from) as apart_from
  from linked join newest using (visitor_id) group by visitor_id, newest.storage_key`

const keyBytes = 16

/** SQL: rows for `visitorKeys`, from the links in the table or subquery. */
export const keysFromLinksSql = (links: string) => `
  select distinct substring(keys from at for ${keyBytes}) as key, visitor_id
  from ${links} cross join lateral generate_series(1, octet_length(keys), ${keyBytes}) at`

/** The meaning of a reassignment: the visitors are different (`apart_from`) or the same (`merged_at`). */
export type ReassignmentRule = Pick<Link, 'apart_from' | 'merged_at'>
const noRule: ReassignmentRule = { apart_from: null, merged_at: null }

export function reassignmentRuleOf(reassigned: SessionReassignment): ReassignmentRule {
  if ('merged_at' in reassigned) return { ...noRule, merged_at: reassigned.merged_at }
  return reassigned.cause === 'operator'
    ? { ...noRule, apart_from: reassigned.earlier_visitor_id }
    : noRule
}

/** Moves the sessions, rebuilds both visitors from their links, and returns the visitors' keys and rows. */
export async function reassignSessions(
  tx: Tx,
  {
    sessionIds,
    from,
    to,
    rule = noRule,
  }: { sessionIds: string[]; from: string; to: string; rule?: ReassignmentRule },
): Promise<KeyedVisitor[]> {
  const visitorIds = [from, to]
  await tx.query(
    `update scoring.links set visitor_id = $1, apart_from = $3, merged_at = $4 where session_id = any($2)`,
    [to, sessionIds, rule.apart_from, rule.merged_at],
  )
  await rebuildFromLinks(tx, visitorIds)
  const { rows } = await tx.query<KeyedVisitor>(
    `select ${keyedVisitorColumnsSql} from scoring.visitor_keys k join scoring.visitors v using (visitor_id)
     where v.visitor_id = any($1) and ${isCurrentSql}`,
    [visitorIds],
  )
  return rows
}

/** Rebuilds the visitors and their keys from their remaining links. A visitor without links is deleted. */
export async function rebuildFromLinks(tx: Tx, visitorIds: string[]): Promise<void> {
  await deleteVisitors(tx, visitorIds)
  const linksSql = '(select * from scoring.links where visitor_id = any($1)) links'
  const insert = (table: { name: string; names: string }, rows: string) =>
    tx.query(`insert into ${table.name} (${table.names}) ${rows}`, [visitorIds])
  await insert(knownVisitors, visitorsFromLinksSql(linksSql))
  await insert(visitorKeys, keysFromLinksSql(linksSql))
}

/** Deletes the visitors and their keys, so that no further session is linked to them. Keeps their links. */
export async function deleteVisitors(tx: Tx, visitorIds: string[]): Promise<void> {
  await tx.query('delete from scoring.visitor_keys where visitor_id = any($1)', [visitorIds])
  await tx.query('delete from scoring.visitors where visitor_id = any($1)', [visitorIds])
}

/** Writes the new visitors into the states, for later decisions about these sessions. */
export async function reassignStates(tx: Tx, reassigned: SessionReassignment[]): Promise<void> {
  await tx.query(
    `update scoring.sessions s
     set constants = (s.constants::jsonb || jsonb_build_object('visitor', (s.constants::jsonb -> 'visitor') || r.link))::text
     from unnest($1::text[], $2::jsonb[]) as r (session_id, link)
     where s.session_id = r.session_id and s.constants is not null`,
    [
      reassigned.map(({ session_id }) => session_id),
      reassigned.map((reassignment) => JSON.stringify(reassignedLink(reassignment))),
    ],
  )
}
