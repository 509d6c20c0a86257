import type { Tx } from '../../../infra/postgres/pool.ts'
import { allKeys, type VisitorKeys } from './keys.ts'
import type { Candidates, KnownVisitor, Match } from './match.ts'
import type { Profile } from './profile.ts'

/** A session of which the visitor is wanted. */
export interface Unresolved {
  organizationId: string
  environment: string
  keys: VisitorKeys
  profile: Profile | null
}

export interface VisitorIndex extends Candidates {
  /** Notes what was resolved, so that the next session of the batch finds it. Returns the number of its sessions. */
  add(resolved: Unresolved & { match: Match; at: number }): number
  /** Counts and profiles to write, and new keys. */
  save(tx: Tx): Promise<void>
}

/** Buckets instead of one lock per key keep a large batch within Postgres's lock table. */
const lockBuckets = 512

interface Row {
  key: string
  visitor_id: string
  first_seen_at: string
  last_seen_at: string
  sessions: number
  profile: string
}

/**
 * Loads what the sessions may match, under locks on their keys taken in one fixed order: of two processes that meet
 * the same visitor at once, the second waits and then finds what the first has written.
 */
export async function openVisitorIndex(tx: Tx, sessions: Unresolved[]): Promise<VisitorIndex> {
  const keys = [...new Set(sessions.flatMap((session) => allKeys(session.keys)))]
  if (keys.length > 0) await lock(tx, keys)
  const rows = keys.length > 0 ? await load(tx, keys) : []
  return createIndex(rows)
}

async function lock(tx: Tx, keys: string[]): Promise<void> {
  const buckets = new Set(keys.map((key) => Number.parseInt(key.slice(0, 8), 16) % lockBuckets))
  const ordered = [...buckets].sort((one, other) => one - other)
  await tx.query(
    "select pg_advisory_xact_lock(hashtext('tidegate:visitors'), bucket) from unnest($1::int[]) bucket",
    [ordered],
  )
}

async function load(tx: Tx, keys: string[]): Promise<Row[]> {
  const { rows } = await tx.query<Row>(
    `select encode(k.key, 'hex') as key, v.visitor_id, v.first_seen_at, v.last_seen_at, v.sessions, v.profile
       from unnest($1::text[]) wanted(hex)
       cross join lateral (
         select key, visitor_id from scoring.visitor_keys where key = decode(wanted.hex, 'hex') limit 10
       ) k
       join scoring.visitors v on v.visitor_id = k.visitor_id`,
    [keys],
  )
  return rows
}

interface Changed extends KnownVisitor {
  organizationId: string
  environment: string
  /** Sessions since it was loaded. */
  added: number
}

function createIndex(rows: Row[]): VisitorIndex {
  const visitors = new Map<string, KnownVisitor>()
  const byKey = new Map<string, Set<string>>()
  const changed = new Map<string, Changed>()
  const newKeys: [key: string, visitorId: string][] = []

  for (const row of rows) {
    if (!visitors.has(row.visitor_id)) visitors.set(row.visitor_id, readRow(row))
    idsOf(row.key).add(row.visitor_id)
  }

  function idsOf(key: string): Set<string> {
    const ids = byKey.get(key) ?? new Set()
    byKey.set(key, ids)
    return ids
  }

  return {
    byKey: (key) => [...(byKey.get(key) ?? [])].flatMap((id) => visitors.get(id) ?? []),
    add({ match, at, keys, profile, organizationId, environment }) {
      const known = visitors.get(match.id)
      const entry = {
        id: match.id,
        first_seen_at: known?.first_seen_at ?? at,
        last_seen_at: at,
        sessions: (known?.sessions ?? 0) + 1,
        profile: profile ?? known?.profile ?? null,
        organizationId,
        environment,
        added: (changed.get(match.id)?.added ?? 0) + 1,
      }
      visitors.set(entry.id, entry)
      changed.set(entry.id, entry)
      for (const key of allKeys(keys).filter((one) => !idsOf(one).has(entry.id))) {
        idsOf(key).add(entry.id)
        newKeys.push([key, entry.id])
      }
      return entry.sessions
    },
    async save(tx) {
      if (changed.size === 0) return
      await saveVisitors(tx, [...changed.values()])
      await saveKeys(tx, newKeys)
    },
  }
}

function readRow(row: Row): KnownVisitor {
  return {
    id: row.visitor_id,
    first_seen_at: Number(row.first_seen_at),
    last_seen_at: Number(row.last_seen_at),
    sessions: row.sessions,
    profile: JSON.parse(row.profile),
  }
}

async function saveVisitors(tx: Tx, entries: Changed[]): Promise<void> {
  await tx.query(
    `insert into scoring.visitors
       (visitor_id, organization_id, environment, first_seen_at, last_seen_at, sessions, profile)
     select * from unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::int[], $7::text[])
     on conflict (visitor_id) do update set
       last_seen_at = greatest(visitors.last_seen_at, excluded.last_seen_at),
       sessions = visitors.sessions + excluded.sessions,
       profile = excluded.profile`,
    [
      entries.map((entry) => entry.id),
      entries.map((entry) => entry.organizationId),
      entries.map((entry) => entry.environment),
      entries.map((entry) => entry.first_seen_at),
      entries.map((entry) => entry.last_seen_at),
      entries.map((entry) => entry.added),
      entries.map((entry) => JSON.stringify(entry.profile)),
    ],
  )
}

async function saveKeys(tx: Tx, keys: [string, string][]): Promise<void> {
  if (keys.length === 0) return
  await tx.query(
    `insert into scoring.visitor_keys (key, visitor_id)
     select decode(hex, 'hex'), visitor_id from unnest($1::text[], $2::text[]) as added(hex, visitor_id)
     on conflict do nothing`,
    [keys.map(([key]) => key), keys.map(([, id]) => id)],
  )
}
