import type pg from 'pg'
import type { Actor, Environment } from '../../schemas/events.ts'
import type { Keyring } from '../crypto/keyring.ts'
import { unavailable } from '../errors/errors.ts'
import { createConcurrencyLimit } from '../flow/limit.ts'
import { type Clock, type Id, type Random, timeOrderedId } from '../ids.ts'
import { type EventLog, type NewRecord, outcomeOf, type Position, type Topic } from '../log/port.ts'
import { lockKey, type Tx, transaction } from '../postgres/pool.ts'
import { systemCode } from '../thrown.ts'
import type { Applied } from './applied.ts'
import { catchUp, lastBefore } from './catch-up.ts'
import type { EventCodec } from './codec.ts'
import type { DomainEvent, EventMeta, KnownCause } from './event.ts'

export interface DecidedEvent<E extends DomainEvent = DomainEvent> {
  event: E
  meta: EventMeta
}

interface ReadDependency {
  projection: string
  topic: Topic
  key?: string
}

/** What another stream has to say about a decision: it holds as long as its locks are held. */
export interface DecisionGuard {
  locks: string[]
  alsoReads: readonly ReadDependency[]
  holds(tx: Tx): Promise<boolean>
}

export interface DecideRequest<S> {
  /**
   * Names of what only one command may decide about at a time, such as `organization:org_...` or `slug:acme`.
   */
  locks: string[]
  /** The topic of the events, which are about `key`, as is the state. */
  topic: Topic
  key: string
  projection: string
  /**
   * 'key': the state follows from the events of `key` (default). 'topic': it follows from all events of the
   * topic, as with a unique name, so every partition must be caught up.
   */
  reads?: 'key' | 'topic'
  /** Other read models that `load` reads, each with the topic they follow from; with `key` only what is about that. */
  alsoReads?: readonly ReadDependency[]
  load: (tx: Tx) => Promise<S>
  /** Pure. Returns what happened, or nothing; throws ApiError to refuse. */
  decide: (state: S) => DecidedEvent[]
  /** What has to change together with it outside of the log. It is not written where the log did not take the events. */
  write?: (tx: Tx, events: DomainEvent[]) => Promise<void>
}

export interface DecideOptions {
  pool: pg.Pool
  log: EventLog
  codec: EventCodec
  applied: Applied
  /** Milliseconds that one step may take before the caller gets 503. Default 5000. */
  timeoutMs?: number
}

/**
 * Returns the events once every reader can see them. A refusal has written nothing. After service.unavailable
 * the events may have been written, or may still be. The caller asks again, and the next decision sees the
 * outcome of the first.
 */
export type Decide = <S>(request: DecideRequest<S>) => Promise<DomainEvent[]>

/** Every event of such a decision names the actor, and the request that it came with. */
export type DecideAs = (actor: Actor, request?: { id: string }) => Decide

/**
 * The locks are held across processes until the state shows the new events, so no two deciders see the same
 * state. When the log does not say whether it wrote, the locks are kept until that is known, at most
 * `maxUnknownMs`. One case is left: a broker that received the request stands still for longer. A later
 * decision may then miss an earlier one.
 */
export function createDecide({
  pool,
  log,
  codec,
  applied,
  timeoutMs = 5000,
}: DecideOptions): DecideAs {
  // Each decision holds a connection while the log, the projection and `load` may need others of the same pool.
  const slots = createConcurrencyLimit({
    max: Math.max(1, Math.floor((pool.options.max ?? 10) / 2)),
    timeoutMs,
  })

  /** The five steps of a decision. The locks are held through all of them, so no other decider sees the same state. */
  async function decideLocked<S>(
    tx: Tx,
    { request, cause, giveUp }: Attempt<S>,
  ): Promise<DomainEvent[]> {
    // 1. Load the state, from read models that show all that the log had when the locks were taken.
    await lock(tx, request.locks, timeoutMs)
    await catchUpWith(tx, readsOf(request))
    const state = await inTime(request.load(tx))

    // 2. Decide. A refusal is thrown here, before anything is written.
    const decided = request.decide(state)
    if (decided.length === 0) return []
    const events = decided.map(({ event }) => event)

    // 3. Append. No expected version is needed, because whoever could have moved the stream waits for the locks.
    await codec.prepare(events)
    const records = decided.map(({ event, meta }) => codec.toCausedRecord(event, meta, cause))
    const positions = await append(records, giveUp)
    await request.write?.(tx, events)

    // 4. Wait until the read model shows the events. It need not read the other topics.
    const ofState = positions.filter(({ topic }) => topic === request.topic)
    await applied.waitFor(request.projection, ofState, { timeoutMs })

    // 5. Answer. The locks end with the transaction, so the next decision sees these events.
    return events
  }

  async function catchUpWith(tx: Tx, reads: readonly ReadDependency[]): Promise<void> {
    for (const { projection, topic, key } of reads) {
      const ends = await log.endPositions(topic)
      const partition = key === undefined ? undefined : await log.partitionOf(topic, key)
      const read = ends.filter((end) => partition === undefined || end.partition === partition)
      await catchUp(tx, { applied, projection, records: lastBefore(read), timeoutMs })
    }
  }

  function append(records: NewRecord[], giveUp: (error: unknown) => void): Promise<Position[]> {
    return log.append(records).catch(async (error) => {
      giveUp(error)
      await outcomeOf(error, maxUnknownMs)
      throw error
    })
  }

  function decideFor<S>(cause: KnownCause, request: DecideRequest<S>): Promise<DomainEvent[]> {
    const { promise: answer, resolve, reject: giveUp } = Promise.withResolvers<DomainEvent[]>()
    slots
      .run(request.locks, () =>
        transaction(pool, (tx) => decideLocked(tx, { request, cause, giveUp })),
      )
      .then(resolve, giveUp)
    return answer
  }

  return (actor, cameWith) => {
    const cause = { actor, request_id: cameWith?.id ?? null }
    return (request) => decideFor(cause, request)
  }
}

interface Attempt<S> {
  request: DecideRequest<S>
  cause: KnownCause
  // Answers the caller, who does not wait for as long as the locks are kept.
  giveUp: (error: unknown) => void
}

function readsOf<S>({ projection, topic, key, reads = 'key', alsoReads = [] }: DecideRequest<S>) {
  return [{ projection, topic, ...(reads === 'key' && { key }) }, ...alsoReads]
}

// Longer than either log's write can live after it was given up, shorter than an idle transaction may last.
const maxUnknownMs = 10_000

async function lock(tx: Tx, names: string[], timeoutMs: number): Promise<void> {
  // In one order everywhere, so that two commands with several locks cannot wait for each other.
  const keys = names.map(lockKey).toSorted()
  await tx.query(`set local lock_timeout = ${timeoutMs}`)
  await inTime(
    tx.query('select pg_advisory_xact_lock(key) from unnest($1::bigint[]) as key', [keys]),
  )
}

// A request that waited too long for a lock (55P03) may be repeated.
function inTime<T>(work: Promise<T>): Promise<T> {
  return work.catch((error) => {
    throw systemCode(error) === '55P03' ? unavailable(error) : error
  })
}

interface About {
  organizationId: string | null
  environment: Environment | null
  // A repetition of the same change has the same id and is applied once.
  eventId: string
  now: number
}

export function decidedEvent<E extends DomainEvent>(
  event: E,
  { organizationId, environment, eventId, now }: About,
): DecidedEvent<E> {
  return { event, meta: { eventId, time: now, organizationId, environment } }
}

/** `eventId` is the same whenever the command is repeated; `now` is in epoch milliseconds. */
export interface NewEvent {
  eventId: string
  now: number
}

/** An event about a row, which is of the row's organization and environment. */
export function eventAbout<E extends DomainEvent>(
  {
    organization_id: organizationId,
    environment,
  }: { organization_id: About['organizationId']; environment: About['environment'] },
  event: E,
  { eventId, now }: NewEvent,
): DecidedEvent<E> {
  return decidedEvent(event, { organizationId, environment, eventId, now })
}

/**
 * What commands work with. Ids and secrets come from `random` and `idTime` alone, so a repetition makes the
 * same. Times come from `clock`: a repetition that is the first to take effect has its own time.
 */
export interface CommandDeps {
  decide: Decide
  keyring: Keyring
  clock: Clock
  random: Random
  /** Epoch milliseconds that ids start with. Default: the time of the command. */
  idTime?: number
}

export function newId<P extends string>(
  prefix: P,
  { random, idTime, now }: Pick<CommandDeps, 'random' | 'idTime'> & { now: number },
): Id<P> {
  return timeOrderedId(prefix, idTime ?? now, random)
}
