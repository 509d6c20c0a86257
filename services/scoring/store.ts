import type { LRUCache } from 'lru-cache'
import type { Position } from '../../infra/log/port.ts'
import { createLru } from '../../infra/lru.ts'
import type { Cte } from '../../infra/postgres/arrays.ts'
import type { Rows, Statement, Tx } from '../../infra/postgres/pool.ts'
import { writeRows } from '../../infra/postgres/table.ts'
import { dueAt } from './session/due.ts'
import type { SessionState } from './session/state.ts'
import { type Constants, sessionStates } from './tables.ts'

type TopicPartition = Omit<Position, 'offset'>

/** Rows that the first statements of a scoring transaction return. */
export interface BatchStart {
  /** Stored next offset by partition. */
  offsets: Map<number, number>
  /** `xmin` of the rows that this transaction will write. */
  transactionId: string
  /** Stored states by session id. */
  states: Map<string, SessionState>
  /** Ids of erased sessions. */
  erased: Set<string>
}

/** A written state. It is current as long as the row's `xmin` is that of the transaction that wrote it. */
interface CachedState {
  xmin: string
  state: SessionState
}

/** States that this process wrote last, by session id. */
export type StateCache = LRUCache<string, CachedState>

// A state takes a few kilobytes.
const maxCachedStates = 2000

export const createStateCache = (): StateCache => createLru(maxCachedStates)

/** Caches written states, except those of finished sessions, which are rarely read again. */
export function cacheWrittenStates(
  cache: StateCache,
  { states, transactionId: xmin }: { states: SessionState[]; transactionId: string },
): void {
  for (const state of states) {
    if (state.final_at === null) cache.set(state.session_id, { xmin, state })
    else cache.delete(state.session_id)
  }
}

export function cachedStatesOf(cache: StateCache, sessionIds: string[]): Map<string, CachedState> {
  const entries = sessionIds.map((id) => [id, cache.get(id)] as const)
  return new Map(entries.flatMap(([id, cached]) => (cached ? [[id, cached] as const] : [])))
}

interface BatchScope {
  partitions: TopicPartition[]
  sessionIds: string[]
  /** By session id. */
  cached: Map<string, CachedState>
}

/**
 * Returns the first statements of a scoring transaction. They lock the partitions' offset rows, so that no other
 * process scores them meanwhile, and load the sessions' states, except those for which the cache is current.
 */
export function lockAndLoadStatements({ partitions, sessionIds, cached }: BatchScope): Statement[] {
  const topics = partitions.map(({ topic }) => topic)
  const numbers = partitions.map(({ partition }) => partition)
  const versions = [...cached].map(([id, { xmin }]) => `${id} ${xmin}`)
  return [
    { name: 'scoring-lock-offsets', text: lockOffsets, values: [topics, numbers] },
    { name: 'scoring-load-states', text: loadStates, values: [sessionIds, versions] },
  ]
}

const lockOffsets = `select partition, next_offset, pg_current_xact_id()::xid as transaction_id from scoring.offsets
  where topic = any($1::text[]) and partition = any($2::integer[]) order by partition for update`

// Safe as a named statement: its plan uses the index even if it was made while the tables were empty.
const loadStates = `select session_id, is_cached, case when not is_cached then state end as state,
    case when not is_cached then constants end as constants
  from (select *, session_id || ' ' || xmin = any($2::text[]) as is_cached
    from scoring.sessions where session_id = any($1::text[])) as stored
  union all select session_id, null, null, null from tidegate_keys.session_keys
    where session_id = any($1::text[]) and sealed_key is null`

/** Parses the rows of `lockAndLoadStatements`. A row with `is_cached` null is an erased session. */
export function batchStartOf(
  [offsets = [], sessions = []]: Rows[],
  cached: Map<string, CachedState>,
): BatchStart {
  const start: BatchStart = {
    offsets: new Map(offsets.map((row) => [Number(row.partition), Number(row.next_offset)])),
    transactionId: String(offsets[0]?.transaction_id),
    states: new Map(),
    erased: new Set(),
  }
  for (const row of sessions) {
    const id = String(row.session_id)
    const state = row.is_cached ? cached.get(id)?.state : undefined
    if (row.is_cached === null) start.erased.add(id)
    else start.states.set(id, state ?? parseState(storedColumns(row)))
  }
  return start
}

const storedColumns = ({ state, constants }: Rows[number]) => ({
  state: String(state),
  constants: String(constants),
})

export interface StoredStateRow {
  session_id: string
  state: string
  constants: string
}

export function parseState(row: Pick<StoredStateRow, 'state' | 'constants'>): SessionState {
  const constants: Constants = JSON.parse(row.constants)
  return { ...JSON.parse(row.state), ...constants }
}

/** Returns the stored states by session id, without sessions whose state was deleted. */
export async function readStates(
  db: Pick<Tx, 'query'>,
  sessionIds: string[],
): Promise<Map<string, object>> {
  const { rows } = await db.query<StoredStateRow>(
    'select session_id, state, constants from scoring.sessions where session_id = any($1)',
    [sessionIds],
  )
  return new Map(rows.map((row) => [row.session_id, parseState(row)]))
}

/** Returns the session's documents, oldest first; none once its state was deleted. */
export async function readDocuments(
  db: Pick<Tx, 'query'>,
  sessionId: string,
): Promise<SessionState['documents']> {
  const { rows } = await db.query<Pick<StoredStateRow, 'state' | 'constants'>>(
    'select state, constants from scoring.sessions where session_id = $1',
    [sessionId],
  )
  // Parsed here, because Postgres rejects JSON with lone surrogates, which clients can send.
  return rows[0] ? parseState(rows[0]).documents : []
}

/**
 * Creates the offset row that `lockAndLoadStatements` locks, or raises its offset to `first`, because earlier records
 * have expired. Returns the offset stored before, or `first` if there was none.
 */
export async function ensureOffset(
  db: Pick<Tx, 'query'>,
  { topic, partition }: TopicPartition,
  first = 0,
): Promise<number> {
  const { rows } = await db.query<{ next_offset: string }>(
    `with before as (select next_offset from scoring.offsets where topic = $1 and partition = $2)
     insert into scoring.offsets (topic, partition, next_offset) values ($1, $2, $3)
     on conflict (topic, partition) do update set next_offset = greatest(offsets.next_offset, excluded.next_offset)
     returning coalesce((select next_offset from before), next_offset) as next_offset`,
    [topic, partition, first],
  )
  return Number(rows[0]?.next_offset ?? first)
}

export async function readOffsets(db: Pick<Tx, 'query'>, topic: string): Promise<Position[]> {
  const { rows } = await db.query<Position>({
    name: 'scoring-read-offsets',
    text: 'select topic, partition, next_offset::float8 as "offset" from scoring.offsets where topic = $1',
    values: [topic],
  })
  return rows
}

/** Overwrites the next offsets of partitions that scoring has read before, after a move to another log. */
export async function moveOffsets(tx: Tx, next: Position[]): Promise<void> {
  await tx.query(
    `update scoring.offsets o set next_offset = moved.next
     from unnest($1::text[], $2::int[], $3::bigint[]) as moved (topic, partition, next)
     where o.topic = moved.topic and o.partition = moved.partition`,
    [
      next.map(({ topic }) => topic),
      next.map(({ partition }) => partition),
      next.map(({ offset }) => offset),
    ],
  )
}

interface ChangedStates {
  states: SessionState[]
  /** By session id. */
  partitions: Map<string, number>
  /** By session id. Constants are written only if they differ from these. */
  storedStates: Map<string, SessionState>
}

export function saveStates({ states, partitions, storedStates }: ChangedStates): Cte[] {
  const rows = states.map(({ snapshot, visitor, ...state }) => {
    const {
      session_id,
      organization_id,
      environment,
      created_at: opened_at,
      last_activity_at,
      final_at,
    } = state
    const stored = storedStates.get(session_id)
    const isSame = stored?.snapshot === snapshot && stored?.visitor === visitor
    return {
      session_id,
      organization_id,
      environment,
      opened_at,
      last_activity_at,
      final_at,
      due_at: dueAt(state),
      state,
      partition: partitions.get(session_id) ?? null,
      // null keeps the stored constants.
      constants: isSame ? null : { snapshot, visitor },
    }
  })
  return writeRows(sessionStates, {
    as: 'save_states',
    columns: sessionStates.columnsWithout('idled_at'),
    rows,
    ordered: true,
    conflict: `on conflict (session_id) do update set last_activity_at = excluded.last_activity_at,
      final_at = excluded.final_at, due_at = excluded.due_at, partition = excluded.partition, state = excluded.state,
      constants = coalesce(excluded.constants, sessions.constants)`,
  })
}
