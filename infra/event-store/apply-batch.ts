import type pg from 'pg'
import { z } from 'zod'
import { type Position, partitionName } from '../log/port.ts'
import { type Cte, runAndEnd, runAsOneStatement, sendInOneWrite } from '../postgres/arrays.ts'
import {
  isConnectionError,
  queryAll,
  type Rows,
  type Statement,
  type Tx,
  tryRollback,
} from '../postgres/pool.ts'
import { systemCode } from '../thrown.ts'
import { appliedChannel, type ChangedIds, encodePayloads } from './applied.ts'
import { type Build, buildLock, defaultHome, saveBuildOffsets } from './builds.ts'
import { isErasure } from './erasures.ts'
import { type RecordedEvent, sessionOf } from './event.ts'
import { type EventBatch, EventFailed, eventsToApply } from './event-batch.ts'
import type { Projection } from './projection.ts'

export interface ApplyOptions {
  pool: pg.Pool
  projection: Projection
  build: Build
  batches: EventBatch[]
}

export type ApplyOutcome =
  | { kind: 'applied'; next: Position[]; changedIds: ChangedIds }
  /** The build's status has changed since it was read; nothing was written. */
  | { kind: 'switched' }

/**
 * Applies batches of several partitions and advances their offsets in one transaction, so each event takes effect
 * exactly once. Throws EventFailed if an event is the cause of a failure.
 */
export async function applyBatches(options: ApplyOptions): Promise<ApplyOutcome> {
  const tx = await options.pool.connect()
  let broken = false
  try {
    return await applyInTransaction(tx, options)
  } catch (error) {
    broken = !(await tryRollback(tx, error instanceof EventFailed ? error.cause : error))
    throw error
  } finally {
    tx.release(broken)
  }
}

async function applyInTransaction(tx: Tx, options: ApplyOptions): Promise<ApplyOutcome> {
  const { projection, batches, build } = options
  const progress = await begin(tx, options)
  if (!progress) {
    await tx.query('rollback')
    return { kind: 'switched' }
  }
  const { offsets, seenIds } = progress
  const events: RecordedEvent[] = []
  const next: Position[] = []
  for (const batch of batches) {
    const { topic, partition } = batch
    const pending = eventsToApply(batch, offsets.get(partitionName(batch)) ?? 0)
    events.push(...pending.events)
    next.push({ topic, partition, offset: pending.next })
  }
  const newEvents = events.filter(createNewEventFilter(seenIds))
  const writes =
    newEvents.length > 0
      ? await applyEvents(tx, options, { newEvents, erasedIds: seenIds }).catch(throwEventFailure)
      : []
  const changedIds = projection.changedIdsOf?.(events) ?? []
  const advanced = next.filter((at) => at.offset > (offsets.get(partitionName(at)) ?? 0))
  await commit(tx, { build, writes, advanced, changedIds }).catch(throwEventFailure)
  return { kind: 'applied', next, changedIds }
}

interface NewEvents {
  newEvents: RecordedEvent[]
  // Includes sessions that earlier batches erased.
  erasedIds: Set<string>
}

// Marks events of erased sessions, also of those that this batch erases, because topics have no relative order.
async function applyEvents(
  tx: Tx,
  { projection, build }: Pick<ApplyOptions, 'projection' | 'build'>,
  { newEvents, erasedIds }: NewEvents,
): Promise<Cte[]> {
  if (!projection.erase) return projection.apply(tx, newEvents)
  const erasures = newEvents.filter(isErasure).map(({ data }) => data)
  const newlyErased = erasures.flatMap(({ session_ids }) => session_ids)
  const erasedSessions = new Set([...erasedIds, ...newlyErased])
  if (erasures.length > 0) {
    await tx.query(
      `insert into ${build.home}.erased_sessions (projection, build, session_id)
       select $1, $2, unnest($3::text[]) on conflict do nothing`,
      [build.projection, build.build, newlyErased],
    )
    await projection.erase(tx, erasures)
  }
  const marked = newEvents
    .filter((event) => !isErasure(event))
    .map((event) =>
      erasedSessions.has(sessionOf(event) ?? '') ? { ...event, isErased: true as const } : event,
    )
  return marked.length > 0 ? projection.apply(tx, marked) : []
}

// Throws EventFailed, or the cause itself if a retry may succeed.
function throwEventFailure(cause: unknown): never {
  throw isTransient(cause) ? cause : new EventFailed(cause)
}

// The filter remembers the events it has seen, so it also drops repeats within the batch.
function createNewEventFilter(seenIds: Set<string>) {
  const seen = new Set(seenIds)
  return ({ meta }: RecordedEvent) => seen.size < seen.add(meta.eventId).size
}

/** Applies events that did not come from the log, except those that the build has applied already. */
export async function applyNewEvents(
  tx: Tx,
  projection: Projection,
  events: RecordedEvent[],
): Promise<void> {
  const [rows = []] = await queryAll(tx, selectApplied(projection, { events }))
  const newEvents = events.filter(createNewEventFilter(idsOf(rows)))
  if (newEvents.length > 0) await runAsOneStatement(tx, await projection.apply(tx, newEvents))
}

// Selects the ids of events that were applied and, if a build is given, of sessions that were erased.
function selectApplied(
  { name, appliedIn, erase }: Projection,
  { events, build }: { events: RecordedEvent[]; build?: Build },
): Statement {
  const ids = events.map(({ meta }) => meta.eventId)
  const selects = appliedIn.map(
    (table) => `select event_id from ${table} where event_id = any($1::text[])`,
  )
  const applied = selects.join(' union all ') || 'select null as event_id where $1::text[] is null'
  if (!erase || !build) return { name: `${name} applied`, text: applied, values: [ids] }
  const sessions = [...new Set(events.flatMap((event) => sessionOf(event) ?? []))]
  const values = [ids, build.projection, build.build, sessions]
  return {
    name: `${name} applied or erased`,
    text: `${applied} union all ${selectErased(build.home)}`,
    values,
  }
}

const selectErased = (home: string) => `select session_id from ${home}.erased_sessions
  where projection = $2 and build = $3 and session_id = any($4::text[])`

const idsOf = (rows: Rows): Set<string> => new Set(rows.map((row) => String(row.event_id)))

const buildRow = z.object({
  status: z.string(),
  offsets: z.record(z.string(), z.number()).nullable(),
})

interface Progress {
  // Next offsets by partition name.
  offsets: Map<string, number>
  // Ids of the batches' events that the build has already applied, and of their sessions that are erased.
  seenIds: Set<string>
}

/**
 * Begins the transaction in one round trip: sets the search path, locks the build and its offsets, and reads which
 * events were already applied. Returns undefined if the build was switched.
 */
async function begin(
  tx: Tx,
  { projection, build, batches }: ApplyOptions,
): Promise<Progress | undefined> {
  const events = batches.flatMap((batch) => batch.events)
  const exclusive = events.some((event) => needsExclusive(projection, event))
  const { locking, searching } = sendInOneWrite(tx, () => ({
    locking: queryAll(
      tx,
      'begin',
      lockBuild(build, exclusive),
      lockOffsets(projection, { build, batches }),
    ),
    searching: queryAll(tx, selectApplied(projection, { events, build })),
  }))
  // Fails if the build was switched, because its tables are gone. The status check below handles that.
  searching.catch(() => {})
  const [, , buildRows = []] = await locking
  const row = buildRow.optional().parse(buildRows[0])
  if (row?.status !== build.status) return undefined
  const [idRows = []] = await searching
  return { offsets: new Map(Object.entries(row.offsets ?? {})), seenIds: idsOf(idRows) }
}

// Under a shared lock, a concurrent transaction might not see the erasure, or rows that the handler depends on.
const needsExclusive = ({ erase, isExclusive }: Projection, event: RecordedEvent): boolean =>
  (erase !== undefined && isErasure(event)) || isExclusive(event)

// Commits to a build that is being filled don't wait for the disk. A crash loses rows and offsets together, so the
// records are read again. The commit that makes the build live flushes all earlier ones.
function lockBuild(build: Build, exclusive: boolean): Statement {
  const lock = exclusive ? 'pg_advisory_xact_lock' : 'pg_advisory_xact_lock_shared'
  const asyncCommit =
    build.status === 'building' ? `, set_config('synchronous_commit', 'off', true)` : ''
  const text = `select set_config('search_path', $1, true), ${lock}($2::bigint)${asyncCommit}`
  const name = `lock ${build.status} build ${lock}`
  return { name, text, values: [`${build.schema}, public`, buildLock(build)] }
}

const lockOffsets = (
  { name, setting = 'null' }: Projection,
  { build: { home, projection, build }, batches }: Pick<ApplyOptions, 'build' | 'batches'>,
): Statement => ({
  name: `${name} lock offsets`,
  text: offsetsSql(setting, home),
  values: [
    projection,
    build,
    batches.map(({ topic }) => topic),
    batches.map(({ partition }) => partition),
  ],
})

const offsetsSql = (setting: string, home: string) => `with position as (
    select topic, partition, next_offset from ${home}.projection_offsets
    where projection = $1 and build = $2
      and (topic, partition) in (select * from unnest($3::text[], $4::integer[]))
    order by topic, partition for update
  )
  select status, ${setting} as setting, (select json_object_agg(topic || '/' || partition, next_offset) from position) as offsets
  from ${home}.projection_builds where projection = $1 and build = $2`

interface CommitInput {
  build: Build
  writes: Cte[]
  // Next offsets of the partitions that have moved.
  advanced: Position[]
  changedIds: ChangedIds
}

// Writes rows and offsets, notifies waiting processes and commits, all in one round trip.
async function commit(tx: Tx, { build, writes, advanced, changedIds }: CommitInput): Promise<void> {
  const payloads = encodePayloads({ projection: build.projection, next: advanced, changedIds })
  const notify = { name: 'notify applied', text: notifyApplied, values: [appliedChannel, payloads] }
  const hasListeners = build.status === 'live' && build.home === defaultHome
  const ending = advanced.length > 0 && hasListeners ? [notify, 'commit'] : ['commit']
  await runAndEnd(tx, [...writes, ...saveBuildOffsets(build, advanced)], ending)
}

const notifyApplied = 'select pg_notify($1, payload) from unnest($2::text[]) payload'

/**
 * Returns true if a retry may succeed. SQLSTATE classes: 40 deadlock or serialization failure, 53 resources, 55 lock
 * not available, 57 operator intervention or shutdown, 58 system error.
 */
export function isTransient(error: unknown): boolean {
  return isConnectionError(error) || /^(40|53|55|57|58)[0-9A-Z]{3}$/.test(systemCode(error) ?? '')
}
