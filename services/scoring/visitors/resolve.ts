import pg from 'pg'
import { z } from 'zod'
import { type Column, type Part, unnest } from '../../../infra/postgres/arrays.ts'
import { queryAll, type Tx } from '../../../infra/postgres/pool.ts'
import type { VisitorLink, VisitorLinked } from '../../../schemas/events.ts'
import type { Draft } from '../decide.ts'
import { type Candidates, type KnownVisitor, type Match, matchVisitor } from './match.ts'
import {
  allKeys,
  anchorsOf,
  type Profile,
  profileOf,
  type Shown,
  shownBy,
  storageOf,
  type VisitorKeys,
  vectorOf,
  visitorKeysOf,
  visitorLinked,
} from './profile.ts'

export type RecordedVisitor = Pick<VisitorLink, 'id' | 'confidence' | 'identified_at' | 'method' | 'basis'>

interface Resolved {
  link: VisitorLink
  sessions: number
}

export interface Resolution {
  /** By session id; a session without an entry has no visitor. */
  visitors: Map<string, Resolved>
  /** Of the sessions that had no visitor before. */
  linked: VisitorLinked[]
  index: VisitorIndex
}

interface ResolveInput {
  tx: Tx
  drafts: Draft[]
  /** Visitors of decisions that were appended before a crash, by decision id: they are kept. */
  recorded: Map<string, RecordedVisitor>
  now: number
}

export async function resolveVisitors({ tx, drafts, recorded, now }: ResolveInput): Promise<Resolution> {
  const visitors = new Map<string, Resolved>()
  const open: ToResolve[] = []
  for (const draft of drafts) {
    const { session_id, visitor, visitor_sessions } = draft.state
    if (visitor) visitors.set(session_id, { link: visitor, sessions: visitor_sessions })
    else open.push(unresolved(draft))
  }
  const index = await openVisitorIndex(tx, open)
  const linked: VisitorLinked[] = []
  for (const session of open) {
    const { session_id } = session.draft.state
    const resolved = visitors.has(session_id) ? undefined : resolve({ session, index, recorded, now })
    if (!resolved) continue
    visitors.set(session_id, resolved)
    const { id: visitor_id, identified_at: linked_at } = resolved.link
    linked.push(visitorLinked(session.shown, { session_id, visitor_id, linked_at, profile: session.profile }))
  }
  return { visitors, linked, index }
}

function unresolved(draft: Draft): ToResolve {
  const { state, evaluation } = draft
  const profile = profileOf(evaluation.facts)
  const { organization_id: organizationId, environment } = state
  const shown = shownBy(state)
  const keys = visitorKeysOf(shown, profile)
  return { draft, shown, keys, profile, organizationId, environment }
}

interface ResolveOne {
  session: ToResolve
  index: VisitorIndex
  recorded: Map<string, RecordedVisitor>
  now: number
}

function resolve({ session, index, recorded, now }: ResolveOne): Resolved | undefined {
  const { draft, keys, profile } = session
  const { state, trigger, evaluation } = draft
  const found = matchVisitor({ sessionId: state.session_id, keys, profile, candidates: index })
  const earlier = recorded.get(trigger.decisionId)
  const match: Match = earlier ? { ...found, ...earlier, confidence: earlier.confidence ?? 0 } : found
  // Nothing was observed: only an id that the client kept can say who it is.
  if (!evaluation.facts.snapshot && !earlier && !match.visitor) return undefined
  const at = earlier?.identified_at ?? now
  const sessions = index.add({ ...session, match, at, wasRecorded: earlier !== undefined })
  const { snapshot } = evaluation.facts
  const link: VisitorLink = {
    id: match.id,
    confidence: match.confidence,
    identified_at: at,
    method: match.method,
    basis: match.basis,
    continuity_id: state.continuity_id,
    anchors: anchorsOf(snapshot),
    vector: vectorOf(profile),
    storage: storageOf(snapshot),
  }
  return { link, sessions }
}

interface ToResolve extends Unresolved {
  draft: Draft
  shown: Shown
}

export interface Unresolved {
  organizationId: string
  environment: string
  keys: VisitorKeys
  profile: Profile | null
}

interface VisitorIndex extends Candidates {
  /** Notes what was resolved, so that the next session of the batch finds it. Returns the number of its sessions. */
  add(resolved: Unresolved & { match: Match; at: number; wasRecorded?: boolean }): number
  save(): Part[]
}

// Buckets instead of one lock per key keep large batches within Postgres's lock table, of 6400 places by default.
const lockBuckets = 2048

const rowsOf = z.array(
  z.object({
    key: z.string(),
    visitor_id: z.string(),
    first_seen_at: z.string(),
    last_seen_at: z.string(),
    sessions: z.number(),
    profile: z.string(),
  }),
)
type Row = z.output<typeof rowsOf>[number]

/**
 * Loads what the sessions may match, under locks on their keys in one fixed order. Of two processes that meet the
 * same visitor at once, the second waits, and then finds what the first has written.
 */
export async function openVisitorIndex(tx: Tx, sessions: Unresolved[]): Promise<VisitorIndex> {
  const keys = [...new Set(sessions.flatMap((session) => allKeys(session.keys)))]
  return createIndex(keys.length > 0 ? await lockAndLoad(tx, keys) : [])
}

async function lockAndLoad(tx: Tx, keys: string[]): Promise<Row[]> {
  const buckets = new Set(keys.map((key) => Number.parseInt(key.slice(0, 8), 16) % lockBuckets))
  const ordered = [...buckets].sort((one, other) => one - other)
  const wanted = keys.map((key) => `(${pg.escapeLiteral(key)})`)
  const [, rows = []] = await queryAll(
    tx,
    `select count(pg_advisory_xact_lock(hashtext('tidegate:visitors'), bucket))
       from unnest(array[${ordered.join()}]) bucket`,
    `select encode(k.key, 'hex') as key, v.visitor_id, v.first_seen_at, v.last_seen_at, v.sessions, v.profile
       from (values ${wanted.join()}) wanted(hex)
       cross join lateral (
         select key, visitor_id from scoring.visitor_keys where key = decode(wanted.hex, 'hex')
         order by visitor_id limit 10
       ) k
       join scoring.visitors v on v.visitor_id = k.visitor_id
      order by k.key, k.visitor_id`,
  )
  return rowsOf.parse(rows)
}

interface Changed extends KnownVisitor {
  organizationId: string
  environment: string
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
    add({ match, at, keys, profile, organizationId, environment, wasRecorded = false }) {
      const known = visitors.get(match.id)
      // Read from the log already, if the visitors were rebuilt since it was recorded.
      const added = wasRecorded && known && known.last_seen_at >= at ? 0 : 1
      const entry = {
        id: match.id,
        first_seen_at: Math.min(known?.first_seen_at ?? at, at),
        last_seen_at: Math.max(known?.last_seen_at ?? at, at),
        sessions: (known?.sessions ?? 0) + added,
        profile: profile ?? known?.profile ?? null,
        organizationId,
        environment,
        added: (changed.get(match.id)?.added ?? 0) + added,
      }
      visitors.set(entry.id, entry)
      changed.set(entry.id, entry)
      for (const key of allKeys(keys).filter((one) => !idsOf(one).has(entry.id))) {
        idsOf(key).add(entry.id)
        newKeys.push([key, entry.id])
      }
      return entry.sessions
    },
    save: () => (changed.size === 0 ? [] : [...saveVisitors([...changed.values()]), ...saveKeys(newKeys)]),
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

const visitorColumns: Column<Changed>[] = [
  { name: 'visitor_id', type: 'text', of: ({ id }) => id },
  { name: 'organization_id', type: 'text', of: ({ organizationId }) => organizationId },
  { name: 'environment', type: 'text', of: ({ environment }) => environment },
  { name: 'first_seen_at', type: 'bigint', of: ({ first_seen_at }) => first_seen_at },
  { name: 'last_seen_at', type: 'bigint', of: ({ last_seen_at }) => last_seen_at },
  { name: 'sessions', type: 'integer', of: ({ added }) => added },
  { name: 'profile', type: 'text', of: ({ profile }) => JSON.stringify(profile) },
]
const keyColumns: Column<[key: string, visitorId: string]>[] = [
  { name: 'key', type: 'bytea', of: ([key]) => Buffer.from(key, 'hex') },
  { name: 'visitor_id', type: 'text', of: ([, id]) => id },
]

// Two partitions may find one visitor by different keys, so under different locks: rows are locked in one order.
function saveVisitors(entries: Changed[]): Part[] {
  const at = (first: number) => {
    const { names, source, values } = unnest(visitorColumns, entries, first)
    const text = `insert into scoring.visitors (${names})
      select * from ${source} as entry (${names}) order by visitor_id
      on conflict (visitor_id) do update set
        first_seen_at = least(visitors.first_seen_at, excluded.first_seen_at),
        last_seen_at = greatest(visitors.last_seen_at, excluded.last_seen_at),
        sessions = visitors.sessions + excluded.sessions,
        profile = excluded.profile`
    return { text, values }
  }
  return [{ as: 'save_visitors', at }]
}

function saveKeys(keys: [string, string][]): Part[] {
  if (keys.length === 0) return []
  const at = (first: number) => {
    const { names, source, values } = unnest(keyColumns, keys, first)
    const text = `insert into scoring.visitor_keys (${names})
      select * from ${source} as added (${names}) order by key, visitor_id on conflict do nothing`
    return { text, values }
  }
  return [{ as: 'save_visitor_keys', at }]
}
