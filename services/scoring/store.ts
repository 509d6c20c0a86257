import type { LRUCache } from 'lru-cache'
import type { Position } from '../../infra/log/port.ts'
import { createLru } from '../../infra/lru.ts'
import type { Part } from '../../infra/postgres/arrays.ts'
import type { Rows, Statement, Tx } from '../../infra/postgres/pool.ts'
import { writeRows } from '../../infra/postgres/table.ts'
import { dueAt } from './session/due.ts'
import type { SessionState } from './session/state.ts'
import { type Constants, sessionStates } from './tables.ts'

type PartitionPlace = Omit<Position, 'offset'>

export interface Opened {
  offsets: Map<number, number>
  /** The `xmin` of the rows that the transaction writes. */
  transactionId: string
  states: Map<string, SessionState>
  /** Ids of the sessions that were erased. */
  erased: Set<string>
}

/** A state as a transaction wrote it: the row names that one as `xmin` until another writes it. */
interface WrittenState {
  xmin: string
  state: SessionState
}

/** The newest states that this process wrote, by session id. */
export type WrittenStates = LRUCache<string, WrittenState>

// Some kilobytes each.
const mostWritten = 2000

export const createWrittenStates = (): WrittenStates => createLru(mostWritten)

/** Remembers written states, but for those of ended sessions, which are seldom read again. */
export function noteWritten(
  written: WrittenStates,
  { states, transactionId: xmin }: { states: SessionState[]; transactionId: string },
): void {
  for (const state of states) {
    if (state.final_at === null) written.set(state.session_id, { xmin, state })
    else written.delete(state.session_id)
  }
}

export function writtenOf(written: WrittenStates, sessionIds: string[]): Map<string, WrittenState> {
  const found = sessionIds.map((id) => [id, written.get(id)] as const)
  return new Map(found.flatMap(([id, one]) => (one ? [[id, one] as const] : [])))
}

export interface Opening {
  places: PartitionPlace[]
  sessionIds: string[]
  /** By session id. */
  known: Map<string, WrittenState>
}

/**
 * Begins the transaction: locks the partitions' offsets, so that no other process scores them at the same time. Then
 * loads the states of the sessions, but for those that are still as they are known.
 */
export function openingStatements({ places, sessionIds, known }: Opening): Statement[] {
  const topics = places.map(({ topic }) => topic)
  const partitions = places.map(({ partition }) => partition)
  const versions = [...known].map(([id, { xmin }]) => `${id} ${xmin}`)
  return [
    { name: 'scoring-lock-offsets', text: lockOffsets, values: [topics, partitions] },
    { name: 'scoring-load-states', text: loadStates, values: [sessionIds, versions] },
  ]
}

const lockOffsets = `select partition, next_offset, pg_current_xact_id()::xid as transaction_id from scoring.offsets
  where topic = any($1::text[]) and partition = any($2::integer[]) order by partition for update`

// By the index also where it was planned while the tables were empty, so that it can have a name.
const loadStates = `select session_id, is_known, case when not is_known then state end as state,
    case when not is_known then constants end as constants
  from (select *, session_id || ' ' || xmin = any($2::text[]) as is_known
    from scoring.sessions where session_id = any($1::text[])) as found
  union all select session_id, null, null, null from tidegate_keys.session_keys
    where session_id = any($1::text[]) and sealed_key is null`

export function readOpened(
  [offsets = [], found = []]: Rows[],
  known: Map<string, WrittenState>,
): Opened {
  const opened: Opened = {
    offsets: new Map(offsets.map((row) => [Number(row.partition), Number(row.next_offset)])),
    transactionId: String(offsets[0]?.transaction_id),
    states: new Map(),
    erased: new Set(),
  }
  for (const row of found) {
    const id = String(row.session_id)
    const state = row.is_known ? known.get(id)?.state : undefined
    if (row.is_known === null) opened.erased.add(id)
    else opened.states.set(id, state ?? parsedState(storedIn(row)))
  }
  return opened
}

const storedIn = ({ state, constants }: Rows[number]) => ({
  state: String(state),
  constants: String(constants),
})

export interface StoredStateRow {
  session_id: string
  state: string
  constants: string
}

export function parsedState(row: Pick<StoredStateRow, 'state' | 'constants'>): SessionState {
  const constants: Constants = JSON.parse(row.constants)
  return { ...JSON.parse(row.state), ...constants }
}

/** States of the sessions, by id; one that was forgotten is missing. */
export async function readStates(
  db: Pick<Tx, 'query'>,
  sessionIds: string[],
): Promise<Map<string, object>> {
  const { rows } = await db.query<StoredStateRow>(
    'select session_id, state, constants from scoring.sessions where session_id = any($1)',
    [sessionIds],
  )
  return new Map(rows.map((row) => [row.session_id, parsedState(row)]))
}

/**
 * Returns the next offset of the partition as it was stored, and stores `first` in its place where that is later, because
 * what precedes it has expired. Makes the row, for `openingStatements` to lock.
 */
export async function readOffset(
  db: Pick<Tx, 'query'>,
  { topic, partition }: PartitionPlace,
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

/** Stores where scoring goes on in the partitions that it has read, as after a move to another log. */
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

export interface ChangedStates {
  states: SessionState[]
  partitions: Map<string, number>
  /** As they were before, by id, so that their constants are written only where they changed. */
  known: Map<string, SessionState>
}

export function saveStates({ states, partitions, known }: ChangedStates): Part[] {
  const rows = states.map(({ snapshot, visitor, ...state }) => {
    const {
      session_id,
      organization_id,
      environment,
      created_at: opened_at,
      last_activity_at,
      final_at,
    } = state
    const stored = known.get(session_id)
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
      // null = as stored.
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
