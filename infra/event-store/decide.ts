import type pg from 'pg'
import type { Actor, Environment } from '../../schemas/events.ts'
import type { Keyring } from '../crypto/keyring.ts'
import { unavailable } from '../errors/errors.ts'
import { createConcurrencyLimit } from '../flow/limit.ts'
import { type Clock, type Id, type Random, timeOrderedId } from '../ids.ts'
import {
  type EventLog,
  type NewRecord,
  type Position,
  type Topic,
  waitForOutcome,
} from '../log/port.ts'
import { lockKey, type Tx, transaction } from '../postgres/pool.ts'
import { systemCode } from '../thrown.ts'
import type { AppliedOffsets } from './applied.ts'
import { lastPositions, waitForRecords } from './catch-up.ts'
import type { EventCodec } from './codec.ts'
import type { DomainEvent, EventMeta, KnownCause } from './event.ts'

export interface DecidedEvent<E extends DomainEvent = DomainEvent> {
  event: E
  meta: EventMeta
}

/** A read model that a decision reads, and the topic (or only the key's partition) that it must have caught up with. */
interface ReadDependency {
  projection: string
  topic: Topic
  key?: string
}

/** A condition on another stream, which stays true while its locks are held. */
export interface DecisionGuard {
  locks: string[]
  alsoReads: readonly ReadDependency[]
  holds(tx: Tx): Promise<boolean>
}

export interface DecideRequest<S> {
  /** Names of the locks that serialize decisions, such as `organization:org_...` or `slug:acme`. */
  locks: string[]
  /** The topic of the events. State and events belong to `key`. */
  topic: Topic
  key: string
  projection: string
  /**
   * 'key': the state depends on the events of `key` only (default). 'topic': it depends on all events of the topic,
   * such as a unique name, so every partition must have caught up.
   */
  reads?: 'key' | 'topic'
  /** Other read models that `load` reads. */
  alsoReads?: readonly ReadDependency[]
  load: (tx: Tx) => Promise<S>
  /** Returns the new events; none if nothing changes. Throws ApiError to refuse. Must be pure. */
  decide: (state: S) => DecidedEvent[]
  /** Writes additional rows after a successful append, in the transaction that holds the locks. */
  write?: (tx: Tx, events: DomainEvent[]) => Promise<void>
}

export interface DecideOptions {
  pool: pg.Pool
  log: EventLog
  codec: EventCodec
  applied: AppliedOffsets
  /** Milliseconds that a step may take before the caller gets 503. Default 5000. */
  timeoutMs?: number
}

/**
 * Runs a decision, and returns its events once every reader can see them. A refusal writes nothing. After
 * `service.unavailable` the events may have been written, or may still be. The caller retries, and the next decision
 * sees the outcome of the first.
 */
export type Decide = <S>(request: DecideRequest<S>) => Promise<DomainEvent[]>

/** Returns a `Decide` whose events name the actor and the request as their cause. */
export type DecideAs = (actor: Actor, request?: { id: string }) => Decide

/**
 * Creates the command side: load, decide, append, under advisory locks. The locks are held across processes until the
 * read model shows the new events, so no two decisions see the same state. If the outcome of an append is unknown, the
 * locks are held until it is known, for at most `maxUnknownMs`. One race remains: if a broker delays a write for
 * longer, a later decision may miss an earlier one.
 */
export function createDecide({
  pool,
  log,
  codec,
  applied,
  timeoutMs = 5000,
}: DecideOptions): DecideAs {
  // A decision holds one connection of the pool while the log, the projection and `load` may need others.
  const slots = createConcurrencyLimit({
    max: Math.max(1, Math.floor((pool.options.max ?? 10) / 2)),
    timeoutMs,
  })

  /** Runs the five steps of a decision, all of them under its locks. */
  async function decideLocked<S>(
    tx: Tx,
    { request, cause, reject }: Attempt<S>,
  ): Promise<DomainEvent[]> {
    // 1. Load the state, from read models that show everything the log had when the locks were taken.
    await lock(tx, request.locks, timeoutMs)
    await waitForReadModels(tx, readsOf(request))
    const state = await lockTimeoutAsUnavailable(request.load(tx))

    // 2. Decide. A refusal is thrown here, before anything is written.
    const decided = request.decide(state)
    if (decided.length === 0) return []
    const events = decided.map(({ event }) => event)

    // 3. Append. No expected version is needed, because every other writer of the stream waits for the locks.
    await codec.prepareKeys(events)
    const records = decided.map(({ event, meta }) => codec.toRecordWithCause(event, meta, cause))
    const positions = await append(records, reject)
    await request.write?.(tx, events)

    // 4. Wait until the read model shows the events. No need to wait for events on other topics.
    const statePositions = positions.filter(({ topic }) => topic === request.topic)
    await applied.waitFor(request.projection, statePositions, { timeoutMs })

    // 5. Return. The transaction then releases the locks, so the next decision sees these events.
    return events
  }

  async function waitForReadModels(tx: Tx, reads: readonly ReadDependency[]): Promise<void> {
    for (const { projection, topic, key } of reads) {
      const ends = await log.endPositions(topic)
      const partition = key === undefined ? undefined : await log.partitionOf(topic, key)
      const relevant = ends.filter((end) => partition === undefined || end.partition === partition)
      await waitForRecords(tx, { applied, projection, records: lastPositions(relevant), timeoutMs })
    }
  }

  function append(records: NewRecord[], reject: (error: unknown) => void): Promise<Position[]> {
    return log.append(records).catch(async (error) => {
      reject(error)
      await waitForOutcome(error, maxUnknownMs)
      throw error
    })
  }

  function decideFor<S>(cause: KnownCause, request: DecideRequest<S>): Promise<DomainEvent[]> {
    const { promise, resolve, reject } = Promise.withResolvers<DomainEvent[]>()
    slots
      .run(request.locks, () =>
        transaction(pool, (tx) => decideLocked(tx, { request, cause, reject })),
      )
      .then(resolve, reject)
    return promise
  }

  return (actor, httpRequest) => {
    const cause = { actor, request_id: httpRequest?.id ?? null }
    return (request) => decideFor(cause, request)
  }
}

interface Attempt<S> {
  request: DecideRequest<S>
  cause: KnownCause
  // Rejects the caller's promise while the locks are still held.
  reject: (error: unknown) => void
}

function readsOf<S>({ projection, topic, key, reads = 'key', alsoReads = [] }: DecideRequest<S>) {
  return [{ projection, topic, ...(reads === 'key' && { key }) }, ...alsoReads]
}

// Longer than a timed-out write may still take to succeed, and shorter than the server's idle-in-transaction timeout.
const maxUnknownMs = 10_000

async function lock(tx: Tx, names: string[], timeoutMs: number): Promise<void> {
  // Sorted, so that two commands with several locks can't deadlock.
  const keys = names.map(lockKey).toSorted()
  await tx.query(`set local lock_timeout = ${timeoutMs}`)
  await lockTimeoutAsUnavailable(
    tx.query('select pg_advisory_xact_lock(key) from unnest($1::bigint[]) as key', [keys]),
  )
}

// Rethrows a lock timeout (55P03) as 503, so that the caller retries.
function lockTimeoutAsUnavailable<T>(work: Promise<T>): Promise<T> {
  return work.catch((error) => {
    throw systemCode(error) === '55P03' ? unavailable(error) : error
  })
}

interface EventScope {
  organizationId: string | null
  environment: Environment | null
  // The same for every retry of the command, so that the event is applied once.
  eventId: string
  now: number
}

export function decidedEvent<E extends DomainEvent>(
  event: E,
  { organizationId, environment, eventId, now }: EventScope,
): DecidedEvent<E> {
  return { event, meta: { eventId, time: now, organizationId, environment } }
}

/** `eventId` is the same for every retry of the command. `now` is in epoch milliseconds. */
export interface EventIdAndTime {
  eventId: string
  now: number
}

/** Returns an event about a row, with the row's organization and environment. */
export function eventAbout<E extends DomainEvent>(
  {
    organization_id: organizationId,
    environment,
  }: { organization_id: EventScope['organizationId']; environment: EventScope['environment'] },
  event: E,
  { eventId, now }: EventIdAndTime,
): DecidedEvent<E> {
  return decidedEvent(event, { organizationId, environment, eventId, now })
}

/**
 * Dependencies of commands. Ids and secrets come from `random` and `idTime` only, so a retry generates the same ones.
 * Times come from `clock`: if a retry is the first attempt to take effect, its own time counts.
 */
export interface CommandDeps {
  decide: Decide
  keyring: Keyring
  clock: Clock
  random: Random
  /** Epoch milliseconds encoded in new ids. Default: the time of the command. */
  idTime?: number
}

export function newId<P extends string>(
  prefix: P,
  { random, idTime, now }: Pick<CommandDeps, 'random' | 'idTime'> & { now: number },
): Id<P> {
  return timeOrderedId(prefix, idTime ?? now, random)
}
