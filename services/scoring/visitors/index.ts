import { type Part, runTogether } from '../../../infra/postgres/arrays.ts'
import { queryAll, type Tx } from '../../../infra/postgres/pool.ts'
import { type RowOf, saveRows, writeRows } from '../../../infra/postgres/table.ts'
import { allKeys, storageKeyOf, type VisitorKeys } from './keys.ts'
import {
  isCurrent,
  type KeyedVisitor,
  keyAndVisitor,
  readSessions,
  reassignSessions,
} from './links.ts'
import type { Candidates, KnownVisitor, Match } from './match.ts'
import type { Profile } from './profile.ts'
import type { LinkedSession } from './split.ts'
import { knownVisitors, type Link, links, visitorKeys } from './tables.ts'

export interface Unresolved {
  sessionId: string
  organizationId: string
  environment: string
  keys: VisitorKeys
  profile: Profile | null
}

interface Added extends Unresolved {
  match: Match
  at: number
  /** None of the visitor's sessions before had this storage. */
  isNewStorage: boolean
  wasRecorded?: boolean
}

export interface VisitorIndex extends Candidates {
  /** Notes a link, so that the next session of the batch finds it. Returns how many sessions the visitor has. */
  add(resolved: Added): number
  /** The sessions of a visitor, those that were noted included. */
  sessionsOf(visitorId: string): Promise<LinkedSession[]>
  /** Gives sessions to another visitor, at once. */
  reassign(sessionIds: string[], between: { from: string; to: string }): Promise<void>
  save(): Part[]
}

// Buckets instead of one lock per key keep large batches within Postgres's lock table, of 6400 places by default.
const lockBuckets = 2048

/**
 * Loads what the sessions may match, under locks on their keys in one fixed order. Of two processes that meet the
 * same visitor at once, the second waits, and then finds what the first has written.
 */
export async function openVisitorIndex(tx: Tx, sessions: Unresolved[]): Promise<VisitorIndex> {
  const keys = [...new Set(sessions.flatMap((session) => allKeys(session.keys)))]
  return createIndex(tx, keys.length > 0 ? await lockAndLoad(tx, keys) : [])
}

async function lockAndLoad(tx: Tx, keys: string[]): Promise<KeyedVisitor[]> {
  const buckets = new Set(keys.map((key) => Number.parseInt(key.slice(0, 8), 16) % lockBuckets))
  const ordered = [...buckets].sort((one, other) => one - other)
  const [, rows = []] = await queryAll<KeyedVisitor>(
    tx,
    { name: 'scoring-lock-keys', text: lockKeys, values: [ordered] },
    { name: 'scoring-load-visitors', text: loadVisitors, values: [keys] },
  )
  return rows
}

const lockKeys = `select count(pg_advisory_xact_lock(hashtext('tidegate:visitors'), bucket))
  from unnest($1::integer[]) bucket`

const loadVisitors = `select ${keyAndVisitor}
  from unnest($1::text[]) hashes(hex)
  cross join lateral (
    select key, visitor_id from scoring.visitor_keys where key = decode(hashes.hex, 'hex')
    order by visitor_id limit 10
  ) k
  join scoring.visitors v on v.visitor_id = k.visitor_id and ${isCurrent}
  order by k.key, k.visitor_id`

interface Changed extends KnownVisitor {
  organization_id: string
  environment: string
  added: number
}

function createIndex(tx: Tx, rows: KeyedVisitor[]): VisitorIndex {
  const visitors = new Map<string, KnownVisitor>()
  const byKey = new Map<string, Set<string>>()
  const changed = new Map<string, Changed>()
  const newKeys: RowOf<typeof visitorKeys>[] = []
  const newLinks: Link[] = []

  for (const row of rows) note(row)

  function note({ key, ...visitor }: KeyedVisitor): void {
    if (!visitors.has(visitor.id)) visitors.set(visitor.id, visitor)
    idsOf(key).add(visitor.id)
  }

  function idsOf(key: string): Set<string> {
    const ids = byKey.get(key) ?? new Set()
    byKey.set(key, ids)
    return ids
  }

  function save(): Part[] {
    if (changed.size === 0) return []
    return [
      ...saveVisitors([...changed.values()]),
      ...saveKeys(newKeys),
      ...saveRows(links, newLinks),
    ]
  }

  async function flush(): Promise<void> {
    await runTogether(tx, save())
    changed.clear()
    newKeys.length = 0
    newLinks.length = 0
  }

  return {
    byKey: (key) => [...(byKey.get(key) ?? [])].flatMap((id) => visitors.get(id) ?? []),
    add(session) {
      const { id } = session.match
      const entry = withSession(session, { known: visitors.get(id), changed: changed.get(id) })
      visitors.set(id, entry)
      changed.set(id, entry)
      for (const key of allKeys(session.keys).filter((one) => !idsOf(one).has(id))) {
        idsOf(key).add(id)
        newKeys.push({ key, visitor_id: id })
      }
      newLinks.push(linkOf(session))
      return entry.sessions
    },
    async sessionsOf(visitorId) {
      await flush()
      return readSessions(tx, visitorId)
    },
    async reassign(sessionIds, { from, to }) {
      const again = await reassignSessions(tx, { sessionIds, from, to })
      for (const id of [from, to]) visitors.delete(id)
      for (const ids of byKey.values()) for (const id of [from, to]) ids.delete(id)
      for (const row of again) note(row)
    },
    save,
  }
}

/** Returns the visitor of the session's match, with the session added. `changed` is what this batch changed of it before. */
function withSession(
  { sessionId, match, at, isNewStorage, wasRecorded = false, ...session }: Added,
  { known, changed }: { known: KnownVisitor | undefined; changed: Changed | undefined },
): Changed {
  // Read from the log already, if the visitors were rebuilt since it was recorded.
  const added = wasRecorded && known && known.last_seen_at >= at ? 0 : 1
  const storage_key = storageKeyOf(session.keys) ?? sessionId
  return {
    id: match.id,
    first_seen_at: Math.min(known?.first_seen_at ?? at, at),
    last_seen_at: Math.max(known?.last_seen_at ?? at, at),
    sessions: (known?.sessions ?? 0) + added,
    profile: session.profile ?? known?.profile ?? null,
    storage_key: isNewStorage || !known ? storage_key : known.storage_key,
    apart_from: known?.apart_from ?? null,
    organization_id: session.organizationId,
    environment: session.environment,
    added: (changed?.added ?? 0) + added,
  }
}

const linkOf = ({ sessionId, match, at, keys, profile, ...session }: Added): Link => ({
  session_id: sessionId,
  visitor_id: match.id,
  organization_id: session.organizationId,
  environment: session.environment,
  linked_at: at,
  storage_key: storageKeyOf(keys) ?? sessionId,
  profile,
  keys: allKeys(keys),
  apart_from: null,
  merged_at: null,
})

// Two partitions may find one visitor by different keys, so under different locks: rows are locked in one order.
function saveVisitors(entries: Changed[]): Part[] {
  return writeRows(knownVisitors, {
    as: 'save_visitors',
    columns: knownVisitors.columnsWithout('apart_from'),
    rows: entries.map(({ id: visitor_id, added: sessions, ...visitor }) => ({
      ...visitor,
      visitor_id,
      sessions,
    })),
    ordered: true,
    conflict: `on conflict (visitor_id) do update set
      first_seen_at = least(visitors.first_seen_at, excluded.first_seen_at),
      last_seen_at = greatest(visitors.last_seen_at, excluded.last_seen_at),
      sessions = visitors.sessions + excluded.sessions,
      profile = excluded.profile, storage_key = excluded.storage_key`,
  })
}

function saveKeys(rows: RowOf<typeof visitorKeys>[]): Part[] {
  const { columns } = visitorKeys
  return writeRows(visitorKeys, {
    as: 'save_visitor_keys',
    columns,
    rows,
    ordered: true,
    conflict: 'on conflict do nothing',
  })
}
