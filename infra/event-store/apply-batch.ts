import type pg from 'pg'
import { z } from 'zod'
import { type Position, placeName } from '../log/port.ts'
import { inOneWrite, type Part, runAndEnd, runTogether } from '../postgres/arrays.ts'
import {
  isConnectionError,
  queryAll,
  type Rows,
  rolledBack,
  type Statement,
  type Tx,
} from '../postgres/pool.ts'
import { systemCode } from '../thrown.ts'
import { appliedChannel, encodeNotifications, type Subjects } from './applied.ts'
import { type Build, buildLock, ownHome, saveBuildOffsets } from './builds.ts'
import { isErasure } from './erased.ts'
import { type RecordedEvent, sessionOf } from './event.ts'
import { dueOf, type EventBatch, EventFailed } from './event-batch.ts'
import type { Projection } from './projection.ts'

export interface ApplyOptions {
  pool: pg.Pool
  projection: Projection
  build: Build
  batches: EventBatch[]
}

export type ApplyOutcome =
  | { kind: 'applied'; next: Position[]; subjects: Subjects }
  /** The build has another status than it was read with; nothing was written. */
  | { kind: 'switched' }

/**
 * Applies what came of several partitions and moves their offsets in one transaction, so that each event takes effect
 * exactly once. Throws EventFailed when an event is at fault.
 */
export async function applyBatches(options: ApplyOptions): Promise<ApplyOutcome> {
  const tx = await options.pool.connect()
  let broken = false
  try {
    return await applyIn(tx, options)
  } catch (error) {
    broken = !(await rolledBack(tx, error instanceof EventFailed ? error.cause : error))
    throw error
  } finally {
    tx.release(broken)
  }
}

async function applyIn(tx: Tx, options: ApplyOptions): Promise<ApplyOutcome> {
  const { projection, batches, build } = options
  const opened = await open(tx, options)
  if (!opened) {
    await tx.query('rollback')
    return { kind: 'switched' }
  }
  const { stored, applied } = opened
  const todo: RecordedEvent[] = []
  const next: Position[] = []
  for (const batch of batches) {
    const { topic, partition } = batch
    const due = dueOf(batch, stored.get(placeName(batch)) ?? 0)
    todo.push(...due.events)
    next.push({ topic, partition, offset: due.next })
  }
  const fresh = todo.filter(isNewTo(applied))
  const writes =
    fresh.length > 0
      ? await applyFresh(tx, options, { fresh, erased: applied }).catch(eventFailed)
      : []
  const subjects = projection.subjectsOf?.(todo) ?? []
  const moved = next.filter((position) => position.offset > (stored.get(placeName(position)) ?? 0))
  await close(tx, { build, writes, moved, subjects }).catch(eventFailed)
  return { kind: 'applied', next, subjects }
}

interface Fresh {
  fresh: RecordedEvent[]
  // Has the ids of sessions that were erased before.
  erased: Set<string>
}

// Those that are erased by the batch itself, too: topics have no order among each other.
async function applyFresh(
  tx: Tx,
  { projection, build }: Pick<ApplyOptions, 'projection' | 'build'>,
  { fresh, erased }: Fresh,
): Promise<Part[]> {
  if (!projection.erase) return projection.apply(tx, fresh)
  const erasures = fresh.filter(isErasure).map(({ data }) => data)
  const named = erasures.flatMap((one) => one.session_ids)
  const sessions = new Set([...erased, ...named])
  if (erasures.length > 0) {
    await tx.query(
      `insert into ${build.home}.erased_sessions (projection, build, session_id)
       select $1, $2, unnest($3::text[]) on conflict do nothing`,
      [build.projection, build.build, named],
    )
    await projection.erase(tx, erasures)
  }
  const others = fresh.filter((event) => !isErasure(event))
  const marked = others.map((event) =>
    sessions.has(sessionOf(event) ?? '') ? { ...event, isErased: true as const } : event,
  )
  return marked.length > 0 ? projection.apply(tx, marked) : []
}

function eventFailed(cause: unknown): never {
  throw isTransient(cause) ? cause : new EventFailed(cause)
}

// An event that comes a second time within the batch is a repeat, too.
function isNewTo(applied: Set<string>) {
  const known = new Set(applied)
  return ({ meta }: RecordedEvent) => known.size < known.add(meta.eventId).size
}

/** For events that come otherwise than from the log: applies those that the build has not yet. */
export async function applyNew(
  tx: Tx,
  projection: Projection,
  events: RecordedEvent[],
): Promise<void> {
  const [rows = []] = await queryAll(tx, findApplied(projection, { events }))
  const fresh = events.filter(isNewTo(idsOf(rows)))
  if (fresh.length > 0) await runTogether(tx, await projection.apply(tx, fresh))
}

// The ids of events that were applied, and of sessions that were erased.
function findApplied(
  { name, appliedIn, erase }: Projection,
  { events, build }: { events: RecordedEvent[]; build?: Build },
): Statement {
  const ids = events.map(({ meta }) => meta.eventId)
  const inTables = appliedIn.map(
    (table) => `select event_id from ${table} where event_id = any($1::text[])`,
  )
  const applied = inTables.join(' union all ') || 'select null as event_id where $1::text[] is null'
  if (!erase || !build) return { name: `${name} applied`, text: applied, values: [ids] }
  const sessions = [...new Set(events.flatMap((event) => sessionOf(event) ?? []))]
  const values = [ids, build.projection, build.build, sessions]
  return {
    name: `${name} applied or erased`,
    text: `${applied} union all ${findErased(build.home)}`,
    values,
  }
}

const findErased = (home: string) => `select session_id from ${home}.erased_sessions
  where projection = $2 and build = $3 and session_id = any($4::text[])`

const idsOf = (rows: Rows): Set<string> => new Set(rows.map((row) => String(row.event_id)))

const guardRow = z.object({
  status: z.string(),
  offsets: z.record(z.string(), z.number()).nullable(),
})

interface Opened {
  stored: Map<string, number>
  // The ids of those events in the batches that the build has already.
  applied: Set<string>
}

/**
 * Sent together: begin, the search path and the lock of the build, which is shared unless an event is applied alone. Then the
 * offsets, whose rows are locked in one order, and which events were applied before. undefined = the build was switched.
 */
async function open(
  tx: Tx,
  { projection, build, batches }: ApplyOptions,
): Promise<Opened | undefined> {
  const events = batches.flatMap((batch) => batch.events)
  const exclusive = events.some((event) => needsExclusive(projection, event))
  const { opening, searching } = inOneWrite(tx, () => ({
    opening: queryAll(
      tx,
      'begin',
      enterBuild(build, exclusive),
      lockOffsetsOf(projection, { build, batches }),
    ),
    searching: queryAll(tx, findApplied(projection, { events, build })),
  }))
  // Fails where the build was switched: its tables are gone.
  searching.catch(() => {})
  const [, , guard = []] = await opening
  const row = guardRow.optional().parse(guard[0])
  if (row?.status !== build.status) return undefined
  const [applied = []] = await searching
  return { stored: new Map(Object.entries(row.offsets ?? {})), applied: idsOf(applied) }
}

// Others might not see yet that a session is erased, or what a visitor is made anew of.
const needsExclusive = ({ erase, isExclusive }: Projection, event: RecordedEvent): boolean =>
  (erase !== undefined && isErasure(event)) || isExclusive(event)

// Nobody reads a build that is being filled, so no commit of it waits for the disk: what a crash takes, it takes with
// the offsets, and it is read again. The switch to the build waits for all before it.
function enterBuild(build: Build, exclusive: boolean): Statement {
  const lock = exclusive ? 'pg_advisory_xact_lock' : 'pg_advisory_xact_lock_shared'
  const waits = build.status === 'building' ? `, set_config('synchronous_commit', 'off', true)` : ''
  const text = `select set_config('search_path', $1, true), ${lock}($2::bigint)${waits}`
  const name = `enter ${build.status} build ${lock}`
  return { name, text, values: [`${build.schema}, public`, buildLock(build)] }
}

const lockOffsetsOf = (
  { name, setting = 'null' }: Projection,
  { build: { home, projection, build }, batches }: Pick<ApplyOptions, 'build' | 'batches'>,
): Statement => ({
  name: `${name} lock offsets`,
  text: lockOffsets(setting, home),
  values: [
    projection,
    build,
    batches.map(({ topic }) => topic),
    batches.map(({ partition }) => partition),
  ],
})

const lockOffsets = (setting: string, home: string) => `with position as (
    select topic, partition, next_offset from ${home}.projection_offsets
    where projection = $1 and build = $2
      and (topic, partition) in (select * from unnest($3::text[], $4::integer[]))
    order by topic, partition for update
  )
  select status, ${setting} as setting, (select json_object_agg(topic || '/' || partition, next_offset) from position) as offsets
  from ${home}.projection_builds where projection = $1 and build = $2`

interface Closing {
  build: Build
  writes: Part[]
  moved: Position[]
  subjects: Subjects
}

// One round trip: the rows with their offsets, the notification of those who wait for them, and the commit.
async function close(tx: Tx, { build, writes, moved, subjects }: Closing): Promise<void> {
  const payloads = encodeNotifications({ projection: build.projection, next: moved, subjects })
  const notify = { name: 'notify applied', text: notifyApplied, values: [appliedChannel, payloads] }
  const isFollowed = build.status === 'live' && build.home === ownHome
  const ending = moved.length > 0 && isFollowed ? [notify, 'commit'] : ['commit']
  await runAndEnd(tx, [...writes, ...saveBuildOffsets(build, moved)], ending)
}

const notifyApplied = 'select pg_notify($1, payload) from unnest($2::text[]) payload'

/**
 * Whether a retry may succeed. Classes: 40 deadlock or serialization failure, 53 resources, 55 lock not
 * available, 57 operator or shutdown, 58 system.
 */
export function isTransient(error: unknown): boolean {
  return isConnectionError(error) || /^(40|53|55|57|58)[0-9A-Z]{3}$/.test(systemCode(error) ?? '')
}
