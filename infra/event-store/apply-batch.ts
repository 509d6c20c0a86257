import pg from 'pg'
import { z } from 'zod'
import { type Position, placeName } from '../log/port.ts'
import { isConnectionError, queryAll, rolledBack, type Tx } from '../postgres/pool.ts'
import { appliedChannel, encodeNotifications, type Subjects } from './applied.ts'
import { type Build, buildLock } from './builds.ts'
import type { RecordedEvent } from './codec.ts'
import { dueOf, type EventBatch, EventFailed } from './consumer.ts'
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
  const stored = await open(tx, options)
  if (!stored) {
    await tx.query('rollback')
    return { kind: 'switched' }
  }
  const todo: RecordedEvent[] = []
  const next: Position[] = []
  for (const batch of batches) {
    const { topic, partition } = batch
    const due = dueOf(batch, stored.get(placeName(batch)) ?? 0)
    todo.push(...due.events)
    next.push({ topic, partition, offset: due.next })
  }
  if (todo.length > 0) await projection.apply(tx, todo).catch(eventFailed)
  const subjects = projection.subjectsOf?.(todo) ?? []
  const moved = next.filter((position) => position.offset > (stored.get(placeName(position)) ?? 0))
  await tx.query(closingOf(build, { moved, subjects }))
  return { kind: 'applied', next, subjects }
}

function eventFailed(cause: unknown): never {
  throw isTransient(cause) ? cause : new EventFailed(cause)
}

const literal = pg.escapeLiteral
const ofBuild = ({ projection, build }: Build) => `projection = ${literal(projection)} and build = ${build}`

const guardRow = z.object({ status: z.string(), offsets: z.record(z.string(), z.number()).nullable() })

// One round trip: begin, the search path and the shared lock of the build, then the offsets with their rows locked in
// one order. undefined = the build was switched.
async function open(tx: Tx, { build, batches }: ApplyOptions): Promise<Map<string, number> | undefined> {
  const places = batches.map(({ topic, partition }) => `(${literal(topic)}, ${partition})`)
  const [guard] =
    (
      await queryAll(
        tx,
        'begin',
        `select set_config('search_path', '${build.schema}, public', true),
         pg_advisory_xact_lock_shared(${buildLock(build)})`,
        `with position as (
        select topic, partition, next_offset from tidegate.projection_offsets
        where ${ofBuild(build)} and (topic, partition) in (${places.join(', ')})
        order by topic, partition for update
      )
      select status, (select json_object_agg(topic || '/' || partition, next_offset) from position) as offsets
      from tidegate.projection_builds where ${ofBuild(build)}`,
      )
    )[2] ?? []
  const row = guardRow.optional().parse(guard)
  return row?.status === build.status ? new Map(Object.entries(row.offsets ?? {})) : undefined
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
