import pg from 'pg'
import type { Batch, LogRecord, Position } from '../log/port.ts'
import { isConnectionError, rolledBack, type Tx } from '../postgres/pool.ts'
import { appliedChannel, encodeNotification, type Subjects } from './applied.ts'
import { type Build, buildLock, useSchema } from './builds.ts'
import type { EventCodec, RecordedEvent } from './codec.ts'
import type { Projection } from './projection.ts'

export interface ApplyOptions {
  pool: pg.Pool
  projection: Projection
  build: Build
  events: RecordedEvent[]
  end: Position
  expected?: number | undefined
}

export type ApplyOutcome =
  | { kind: 'applied'; nextOffset: number; subjects: Subjects }
  /** Postgres lost commits that this process has seen. The records from `nextOffset` on are replayed. */
  | { kind: 'replay'; nextOffset: number }
  /** The build has another status than it was read with; nothing was written. */
  | { kind: 'switched' }
  | { kind: 'unknown_partition' }

export class HandlerFailed extends Error {
  constructor(cause: unknown) {
    // Not the cause's message: it may quote a value, and only the logger knows which to leave out.
    super('the handler failed', { cause })
    this.name = 'HandlerFailed'
  }
}

/**
 * Applies events and moves the offset in one transaction, so that each event takes effect exactly once. A
 * crash of Postgres may undo the last transactions whole; the offset then says where to replay from.
 */
export async function applyEvents(options: ApplyOptions): Promise<ApplyOutcome> {
  const tx = await options.pool.connect()
  let broken = false
  try {
    const outcome = await applyIn(tx, options)
    if (outcome.kind !== 'applied') await tx.query('rollback')
    return outcome
  } catch (error) {
    broken = !(await rolledBack(tx, error instanceof HandlerFailed ? error.cause : error))
    throw error
  } finally {
    tx.release(broken)
  }
}

async function applyIn(tx: Tx, options: ApplyOptions): Promise<ApplyOutcome> {
  const { projection, events, end, expected = 0 } = options
  const guard = lastRow(await tx.query(openingOf(options)))
  if (guard?.status !== options.build.status) return { kind: 'switched' }
  if (guard.next_offset === null) return { kind: 'unknown_partition' }
  const next = Number(guard.next_offset)
  const todo = events.filter((event) => event.position.offset >= next)
  if (next < expected && next < (events[0]?.position.offset ?? end.offset))
    return { kind: 'replay', nextOffset: next }
  if (todo.length > 0) await projection.apply(tx, todo).catch(handlerFailed)
  const applied = { nextOffset: Math.max(next, end.offset), subjects: projection.subjectsOf?.(todo) ?? [] }
  await tx.query(closingOf(options, applied))
  return { kind: 'applied', ...applied }
}

function handlerFailed(cause: unknown): never {
  throw new HandlerFailed(cause)
}

const literal = pg.escapeLiteral

/** One round trip: begin, settings, the shared build lock, and the offset with its row locked. */
function openingOf({ build, end }: ApplyOptions): string {
  const which = `projection = ${literal(build.projection)} and build = ${build.build}`
  return `begin; set local synchronous_commit = off; ${useSchema(build)};
    select pg_advisory_xact_lock_shared(${buildLock(build)});
    with position as (
      select next_offset from tidegate.projection_offsets
      where ${which} and topic = ${literal(end.topic)} and partition = ${end.partition} for update
    )
    select status, (select next_offset from position) from tidegate.projection_builds where ${which}`
}

interface Closing {
  nextOffset: number
  subjects: Subjects
}

function closingOf({ build, end }: ApplyOptions, { nextOffset, subjects }: Closing): string {
  const { topic, partition } = end
  const notification = encodeNotification({
    projection: build.projection,
    next: { ...end, offset: nextOffset },
    subjects,
  })
  const notify =
    build.status === 'live' ? `select pg_notify(${literal(appliedChannel)}, ${literal(notification)});` : ''
  return `update tidegate.projection_offsets set next_offset = ${nextOffset}
    where projection = ${literal(build.projection)} and build = ${build.build}
      and topic = ${literal(topic)} and partition = ${partition};
    ${notify} commit`
}

function lastRow(results: unknown): Record<string, unknown> | undefined {
  const last: unknown = Array.isArray(results) ? results.at(-1) : results
  if (typeof last !== 'object' || last === null || !('rows' in last) || !Array.isArray(last.rows))
    return undefined
  return last.rows.at(-1)
}

/** An event that cannot be applied. Its partition is halted at it until a person has dealt with it. */
export interface Poison {
  position: Position
  error: unknown
}

export interface DecodedBatch {
  events: RecordedEvent[]
  end: Position
  poison: Poison | undefined
}

export function decodeBatch(codec: EventCodec, { topic, partition, records }: Batch): DecodedBatch {
  const events: RecordedEvent[] = []
  let offset = records[0]?.offset ?? 0
  for (const record of records) {
    const decoded = decode(codec, record)
    if ('error' in decoded) {
      const position = { topic, partition, offset: record.offset }
      return { events, end: position, poison: { position, error: decoded.error } }
    }
    events.push(decoded)
    offset = record.offset + 1
  }
  return { events, end: { topic, partition, offset }, poison: undefined }
}

function decode(codec: EventCodec, record: LogRecord): RecordedEvent | { error: unknown } {
  try {
    return codec.fromRecord(record)
  } catch (error) {
    return { error }
  }
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
