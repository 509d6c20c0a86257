import pg from 'pg'
import { z } from 'zod'
import { type Position, placeName } from '../log/port.ts'
import { inOneWrite, type Part, runAndEnd, runTogether } from '../postgres/arrays.ts'
import { isConnectionError, queryAll, type Rows, rolledBack, type Tx } from '../postgres/pool.ts'
import { appliedChannel, encodeNotifications, type Subjects } from './applied.ts'
import { type Build, buildLock } from './builds.ts'
import { type RecordedEvent, sessionOf } from './codec.ts'
import { isErasure } from './erased.ts'
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
    fresh.length > 0 ? await applyFresh(tx, options, { fresh, erased: applied }).catch(eventFailed) : []
  const subjects = projection.subjectsOf?.(todo) ?? []
  const moved = next.filter((position) => position.offset > (stored.get(placeName(position)) ?? 0))
  await runAndEnd(tx, writes, closingOf(build, { moved, subjects })).catch(eventFailed)
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
      `insert into tidegate.erased_sessions (projection, build, session_id)
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

const literal = pg.escapeLiteral
const ofBuild = ({ projection, build }: Build) => `projection = ${literal(projection)} and build = ${build}`

// An event that comes a second time within the batch is a repeat, too.
function isNewTo(applied: Set<string>) {
  const known = new Set(applied)
  return ({ meta }: RecordedEvent) => known.size < known.add(meta.eventId).size
}

/** For events that come otherwise than from the log: applies those that the build has not yet. */
export async function applyNew(tx: Tx, projection: Projection, events: RecordedEvent[]): Promise<void> {
  const [rows = []] = await queryAll(tx, appliedText(projection, { events }))
  const fresh = events.filter(isNewTo(idsOf(rows)))
  if (fresh.length > 0) await runTogether(tx, await projection.apply(tx, fresh))
}

interface Looked {
  events: RecordedEvent[]
  build?: Build
}

// The ids of events that were applied, and of sessions that were erased.
function appliedText({ appliedIn, erase }: Projection, { events, build }: Looked): string {
  const ids = events.map(({ meta }) => literal(meta.eventId)).join() || 'null'
  const selects = appliedIn.map((table) => `select event_id from ${table} where event_id in (${ids})`)
  const sessions = new Set(events.flatMap((event) => sessionOf(event) ?? []))
  if (erase && build && sessions.size > 0)
    selects.push(
      `select session_id as event_id from tidegate.erased_sessions
       where ${ofBuild(build)} and session_id in (${[...sessions].map(literal).join()})`,
    )
  return selects.join(' union all ') || 'select null where false'
}

const idsOf = (rows: Rows): Set<string> => new Set(rows.map((row) => String(row.event_id)))

const guardRow = z.object({ status: z.string(), offsets: z.record(z.string(), z.number()).nullable() })

interface Opened {
  stored: Map<string, number>
  // Of the batches' events, those that the build has already.
  applied: Set<string>
}

// Sent together: begin, the search path and the lock of the build, shared unless sessions are erased, then the offsets with their rows locked in
// one order, and which events were applied before. undefined = the build was switched.
async function open(tx: Tx, { projection, build, batches }: ApplyOptions): Promise<Opened | undefined> {
  const places = batches.map(({ topic, partition }) => `(${literal(topic)}, ${partition})`)
  const events = batches.flatMap((batch) => batch.events)
  // Nobody else applies events meanwhile: one of them might not see yet that a session is erased.
  const isErasing = projection.erase !== undefined && events.some(isErasure)
  const { opening, looking } = inOneWrite(tx, () => ({
    opening: queryAll(
      tx,
      'begin',
      `select set_config('search_path', '${build.schema}, public', true),
         ${isErasing ? 'pg_advisory_xact_lock' : 'pg_advisory_xact_lock_shared'}(${buildLock(build)})`,
      `with position as (
          select topic, partition, next_offset from tidegate.projection_offsets
          where ${ofBuild(build)} and (topic, partition) in (${places.join(', ')})
          order by topic, partition for update
        )
        select status, (select json_object_agg(topic || '/' || partition, next_offset) from position) as offsets
        from tidegate.projection_builds where ${ofBuild(build)}`,
    ),
    looking: queryAll(tx, appliedText(projection, { events, build })),
  }))
  // Fails where the build was switched: its tables are gone.
  looking.catch(() => {})
  const [, , guard = []] = await opening
  const row = guardRow.optional().parse(guard[0])
  if (row?.status !== build.status) return undefined
  const [applied = []] = await looking
  return { stored: new Map(Object.entries(row.offsets ?? {})), applied: idsOf(applied) }
}

interface Closing {
  moved: Position[]
  subjects: Subjects
}

// One round trip: the offsets, the notification of those who wait for them, and the commit.
function closingOf(build: Build, { moved, subjects }: Closing): string {
  if (moved.length === 0) return 'commit'
  const values = moved.map(({ topic, partition, offset }) => `(${literal(topic)}, ${partition}, ${offset})`)
  const payloads = encodeNotifications({ projection: build.projection, next: moved, subjects })
  const notify = payloads.map((payload) => `pg_notify(${literal(appliedChannel)}, ${literal(payload)})`)
  return `insert into tidegate.projection_offsets (projection, build, topic, partition, next_offset)
    select ${literal(build.projection)}, ${build.build}, * from (values ${values.join(', ')}) as moved
    on conflict (projection, build, topic, partition) do update set next_offset = excluded.next_offset;
    ${build.status === 'live' ? `select ${notify.join(', ')};` : ''} commit`
}

/**
 * Whether a retry may succeed. Classes: 40 deadlock or serialization failure, 53 resources, 55 lock not
 * available, 57 operator or shutdown, 58 system.
 */
export function isTransient(error: unknown): boolean {
  if (isConnectionError(error)) return true
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  return /^(40|53|55|57|58)[0-9A-Z]{3}$/.test(code)
}
