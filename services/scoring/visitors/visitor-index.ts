import { type Cte, runAsOneStatement } from '../../../infra/postgres/arrays.ts'
import { queryAll, type Tx } from '../../../infra/postgres/pool.ts'
import { type RowOf, saveRows, writeRows } from '../../../infra/postgres/table.ts'
import { allKeys, storageKeyOf, type VisitorKeys } from './keys.ts'
import {
  isCurrentSql,
  type KeyedVisitor,
  keyedVisitorColumnsSql,
  readLinkedSessions,
  reassignSessions,
} from './links.ts'
import type { Candidates, KnownVisitor, Match } from './match.ts'
import type { Profile } from './profile.ts'
import type { LinkedSession } from './split.ts'
import { knownVisitors, type Link, links, visitorKeys } from './tables.ts'

export interface UnlinkedSession {
  sessionId: string
  organizationId: string
  environment: string
  keys: VisitorKeys
  profile: Profile | null
}

interface NewLink extends UnlinkedSession {
  match: Match
  at: number
  /** True if no earlier session of the visitor had this client storage. */
  isNewStorage: boolean
  /** True if the link was already appended to the log before a crash. */
  wasRecorded?: boolean
}

export interface VisitorIndex extends Candidates {
  /** Adds a link, which later sessions of the batch find. Returns the visitor's number of sessions. */
  add(link: NewLink): number
  /** Writes the pending links, then reads the visitor's sessions. */
  flushAndReadSessions(visitorId: string): Promise<LinkedSession[]>
  /** Moves sessions to another visitor immediately. */
  reassign(sessionIds: string[], move: { from: string; to: string }): Promise<void>
  /** Returns the writes that are not flushed yet. */
  pendingWrites(): Cte[]
}

// Buckets instead of one lock per key keep large batches within Postgres's lock table, which has 6400 slots by default.
const lockBuckets = 2048

/**
 * Locks the sessions' keys in a fixed order, and loads the visitors that they may match. If two processes see the same
 * visitor at once, the second waits, then finds what the first has written.
 */
export async function openVisitorIndex(tx: Tx, sessions: UnlinkedSession[]): Promise<VisitorIndex> {
  const keys = [...new Set(sessions.flatMap((session) => allKeys(session.keys)))]
  return createIndex(tx, keys.length > 0 ? await lockAndLoad(tx, keys) : [])
}

async function lockAndLoad(tx: Tx, keys: string[]): Promise<KeyedVisitor[]> {
  const buckets = new Set(keys.map((key) => Number.parseInt(key.slice(0, 8), 16) % lockBuckets))
  const ordered = [...buckets].sort((a, b) => a - b)
  const [, rows = []] = await queryAll<KeyedVisitor>(
    tx,
    { name: 'scoring-lock-keys', text: lockKeys, values: [ordered] },
    { name: 'scoring-load-visitors', text: loadVisitors, values: [keys] },
  )
  return rows
}

const lockKeys = `select count(pg_advisory_xact_lock(hashtext('tidegate:visitors'), bucket))
  from unnest($1::integer[]) bucket`

const loadVisitors = `select ${keyedVisitorColumnsSql}
  from unnest($1::text[]) hashes(hex)
  cross join lateral (
    select key, visitor_id from scoring.visitor_keys where key = decode(hashes.hex, 'hex')
    order by visitor_id limit 10
  ) k
  join scoring.visitors v on v.visitor_id = k.visitor_id and ${isCurrentSql}
  order by k.key, k.visitor_id`

interface ChangedVisitor extends KnownVisitor {
  organization_id: string
  environment: string
  /** Sessions that this batch added. */
  added: number
}

function createIndex(tx: Tx, rows: KeyedVisitor[]): VisitorIndex {
  const visitors = new Map<string, KnownVisitor>()
  const byKey = new Map<string, Set<string>>()
  const changed = new Map<string, ChangedVisitor>()
  const newKeys: RowOf<typeof visitorKeys>[] = []
  const newLinks: Link[] = []

  for (const row of rows) addRow(row)

  function addRow({ key, ...visitor }: KeyedVisitor): void {
    if (!visitors.has(visitor.id)) visitors.set(visitor.id, visitor)
    idsOf(key).add(visitor.id)
  }

  function idsOf(key: string): Set<string> {
    const ids = byKey.get(key) ?? new Set()
    byKey.set(key, ids)
    return ids
  }

  function pendingWrites(): Cte[] {
    if (changed.size === 0) return []
    return [
      ...saveVisitors([...changed.values()]),
      ...saveKeys(newKeys),
      ...saveRows(links, newLinks),
    ]
  }

  async function flush(): Promise<void> {
    await runAsOneStatement(tx, pendingWrites())
    changed.clear()
    newKeys.length = 0
    newLinks.length = 0
  }

  return {
    byKey: (key) => [...(byKey.get(key) ?? [])].flatMap((id) => visitors.get(id) ?? []),
    add(link) {
      const { id } = link.match
      const visitor = withSession(link, { before: visitors.get(id), changed: changed.get(id) })
      visitors.set(id, visitor)
      changed.set(id, visitor)
      for (const key of allKeys(link.keys).filter((hash) => !idsOf(hash).has(id))) {
        idsOf(key).add(id)
        newKeys.push({ key, visitor_id: id })
      }
      newLinks.push(linkRow(link))
      return visitor.sessions
    },
    async flushAndReadSessions(visitorId) {
      await flush()
      return readLinkedSessions(tx, visitorId)
    },
    async reassign(sessionIds, { from, to }) {
      const rebuilt = await reassignSessions(tx, { sessionIds, from, to })
      for (const id of [from, to]) visitors.delete(id)
      for (const ids of byKey.values()) for (const id of [from, to]) ids.delete(id)
      for (const row of rebuilt) addRow(row)
    },
    pendingWrites,
  }
}

/** Returns the matched visitor with the session added. `changed`: the visitor after earlier sessions of the batch. */
function withSession(
  { sessionId, match, at, isNewStorage, wasRecorded = false, ...session }: NewLink,
  { before, changed }: { before: KnownVisitor | undefined; changed: ChangedVisitor | undefined },
): ChangedVisitor {
  // If the visitors were rebuilt after the link was recorded, the session is already counted.
  const added = wasRecorded && before && before.last_seen_at >= at ? 0 : 1
  const storage_key = storageKeyOf(session.keys) ?? sessionId
  return {
    id: match.id,
    first_seen_at: Math.min(before?.first_seen_at ?? at, at),
    last_seen_at: Math.max(before?.last_seen_at ?? at, at),
    sessions: (before?.sessions ?? 0) + added,
    profile: session.profile ?? before?.profile ?? null,
    storage_key: isNewStorage || !before ? storage_key : before.storage_key,
    apart_from: before?.apart_from ?? null,
    organization_id: session.organizationId,
    environment: session.environment,
    added: (changed?.added ?? 0) + added,
  }
}

const linkRow = ({ sessionId, match, at, keys, profile, ...session }: NewLink): Link => ({
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

// Two partitions may lock different keys of one visitor, so rows are written in a fixed order to avoid deadlocks.
function saveVisitors(changed: ChangedVisitor[]): Cte[] {
  return writeRows(knownVisitors, {
    as: 'save_visitors',
    columns: knownVisitors.columnsWithout('apart_from'),
    rows: changed.map(({ id: visitor_id, added: sessions, ...visitor }) => ({
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

function saveKeys(rows: RowOf<typeof visitorKeys>[]): Cte[] {
  const { columns } = visitorKeys
  return writeRows(visitorKeys, {
    as: 'save_visitor_keys',
    columns,
    rows,
    ordered: true,
    conflict: 'on conflict do nothing',
  })
}
