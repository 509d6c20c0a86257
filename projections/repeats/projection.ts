import type { RecordedEvent } from '../../infra/event-store/event.ts'
import type { Projection } from '../../infra/event-store/projection.ts'
import { type Cte, unnest } from '../../infra/postgres/arrays.ts'
import type { Tx } from '../../infra/postgres/pool.ts'
import type { RowOf } from '../../infra/postgres/table.ts'
import { eventTopics, type VisitorErased } from '../../schemas/events.ts'
import {
  clientUserKey,
  keyNames,
  repeatApplyIndexes,
  repeatKeys,
  repeatReadIndexes,
  repeats,
  windows,
} from './tables.ts'

/** Sessions of the last day with the keys by which scoring counts repeats. */
export const repeatsProjection: Projection = {
  name: 'repeats',
  version: 2,
  topics: [eventTopics.SessionScored, eventTopics.VisitorErased],
  tables: [repeats.name],
  ddl: repeats.ddl + repeatApplyIndexes,
  indexes: repeatReadIndexes,
  appliedIn: [],
  batchDelayMs: 250,
  isExclusive: () => false,
  apply,
  erase,
}

type ScoredEvent = Extract<RecordedEvent, { type: 'SessionScored' }>
type UserEvent = Extract<RecordedEvent, { type: 'ClientUserAttached' | 'ClientUserCleared' }>
type RepeatRow = RowOf<typeof repeats>
type UserRow = Pick<RepeatRow, 'session_id' | 'client_user' | 'user_at'>

// Writes decisions first, because a session's first decision precedes its user events.
async function apply(tx: Tx, events: RecordedEvent[]): Promise<Cte[]> {
  const scored = events.filter((event): event is ScoredEvent => event.type === 'SessionScored')
  await saveSessions(tx, latestBySession(scored.map(sessionRow), 'observed_at'))
  const users = events.filter(isUserEvent).filter(({ isErased }) => !isErased)
  return userWrites(latestBySession(users.map(userRow), 'user_at'))
}

// Keeps the rows, because the newest row of a partition determines which rows expire.
async function erase(tx: Tx, erased: VisitorErased[]): Promise<void> {
  await tx.query(
    `update repeats set ${keyNames.map((name) => `${name} = null`).join(', ')}, hands = null, client_user = null, user_at = null
     where session_id = any($1)`,
    [erased.flatMap(({ session_ids }) => session_ids)],
  )
}

function isUserEvent(event: RecordedEvent): event is UserEvent {
  return event.type === 'ClientUserAttached' || event.type === 'ClientUserCleared'
}

// Returns the newest row of each session, so that a repeated event does not restore an old state.
function latestBySession<
  K extends string,
  R extends { session_id: string } & Record<K, number | null>,
>(rows: R[], time: K): R[] {
  const bySession = new Map<string, R>()
  for (const row of rows) {
    const current = bySession.get(row.session_id)
    if (!current || Number(current[time]) <= Number(row[time])) bySession.set(row.session_id, row)
  }
  return [...bySession.values()]
}

function sessionRow({ data, position, isErased }: ScoredEvent): RepeatRow {
  const { session_id, created_at: opened_at, observed_at, request, visitor } = data
  const keys = isErased
    ? noKeys
    : repeatKeys({ ...data, ip_address: request.ip_address, visitor_id: visitor?.id ?? null })
  const about = { session_id, log_partition: position.partition, opened_at, observed_at }
  return { ...about, ...keys, client_user: null, user_at: null }
}

const noKeys = repeatKeys({
  organization_id: '',
  environment: 'live',
  ip_address: '',
  visitor_id: null,
  snapshot_hash: null,
  behavior_hash: null,
})

function userRow(event: UserEvent): UserRow {
  const { session_id } = event.data
  if (event.type === 'ClientUserCleared')
    return { session_id, client_user: null, user_at: event.data.cleared_at }
  const client_user = clientUserKey(event.data, event.data.client_user_id)
  return { session_id, client_user, user_at: event.data.attached_at }
}

const sessionColumns = repeats.columnsWithout('client_user', 'user_at')
const userColumns = repeats.columnsOf('session_id', 'client_user', 'user_at')

const assignments = ['observed_at', ...keyNames, 'hands']
  .map((name) => `${name} = excluded.${name}`)
  .join(', ')

// Limits the rows that a statement locks, because a whole partition can expire at once after a pause.
const chunk = 5000

// The order makes Postgres scan the index from its oldest entry, whatever its row estimate.
const pruneSql = (bounds: string) => `delete from repeats where session_id = any(array(
  select old.session_id from ${bounds} as bound cross join lateral (
    select session_id from repeats r where r.log_partition = bound.log_partition and r.opened_at < bound.before
    order by r.opened_at limit ${chunk}
  ) old)) returning 1`

// Writes the sessions, and deletes those a day older than the newest of their partition. Uses a single statement, so
// that the result does not depend on how the log was divided into batches.
async function saveSessions(tx: Tx, rows: RepeatRow[]): Promise<void> {
  if (rows.length === 0) return
  const { names, source, values } = unnest(sessionColumns, rows)
  const { rows: results } = await tx.query<{ deleted: number }>({
    name: 'save-repeats',
    text: `with incoming as (select * from ${source} as i (${names})),
      bounds as (
        select log_partition, greatest(max(opened_at), (
            select r.opened_at from repeats r where r.log_partition = i.log_partition
            order by r.opened_at desc limit 1
          )) - ${windows.day} as before
        from incoming i group by log_partition
      ),
      pruned as (${pruneSql('bounds')}),
      put as (
        insert into repeats as r (${names})
        select i.* from incoming i join bounds using (log_partition) where i.opened_at >= before
        on conflict (session_id) do update set ${assignments}
          where excluded.observed_at >= r.observed_at
      )
      select count(*)::integer as deleted from pruned`,
    values,
  })
  if ((results[0]?.deleted ?? 0) >= chunk) await pruneRest(tx)
}

async function pruneRest(tx: Tx): Promise<void> {
  const bounds = `(select log_partition, max(opened_at) - ${windows.day} as before from repeats group by 1)`
  const { rowCount } = await tx.query({ name: 'prune-repeats', text: pruneSql(bounds) })
  if ((rowCount ?? 0) >= chunk) await pruneRest(tx)
}

function userWrites(rows: UserRow[]): Cte[] {
  if (rows.length === 0) return []
  const sql = (first: number) => {
    const { names, source, values } = unnest(userColumns, rows, first)
    const text = `update repeats as r set client_user = u.client_user, user_at = u.user_at
      from ${source} as u (${names})
      where r.session_id = u.session_id and (r.user_at is null or r.user_at <= u.user_at)`
    return { text, values }
  }
  return [{ as: 'save_repeat_users', sql }]
}
