import { LRUCache } from 'lru-cache'
import type pg from 'pg'
import type { Applied } from '../../../infra/event-store/applied.ts'
import { type CaughtUp, createCaughtUp } from '../../../infra/event-store/catch-up.ts'
import type { EventCodec, RecordedEvent } from '../../../infra/event-store/codec.ts'
import { consumeEvents, type EventConsumer } from '../../../infra/event-store/consumer.ts'
import { decidedEvent } from '../../../infra/event-store/decide.ts'
import { type EventBatch, EventFailed } from '../../../infra/event-store/event-batch.ts'
import type { Skips } from '../../../infra/event-store/skips.ts'
import type { Clock } from '../../../infra/ids.ts'
import { webhookEventId } from '../../../infra/ids.ts'
import type { EventLog, NewRecord, Position } from '../../../infra/log/port.ts'
import type { Db } from '../../../infra/postgres/pool.ts'
import type { Logger } from '../../../infra/telemetry.ts'
import { createBreather } from '../../../infra/timing.ts'
import { isMove, type MoveEvent, movedAt, toldAgain } from '../../../projections/sessions/apply-moves.ts'
import { toldTypes } from '../../../projections/sessions/projection.ts'
import { earlierTold, findSessionEvents } from '../../../projections/sessions/session-events.ts'
import type { SessionEventType } from '../../../projections/sessions/tables.ts'
import {
  raisedEventIds,
  type Subscriber,
  subscribedEndpoints,
} from '../../../projections/webhooks/queries.ts'
import { eventTopics, type SessionScored, type WebhookEventRaised } from '../../../schemas/events.ts'
import { enqueue } from '../dispatch/queue.ts'
import { isRecent, type Raised, raise, raiseAgain } from './raise.ts'

export const plannerGroup = 'tidegate.webhooks.planner'

interface PlannerOptions {
  log: EventLog
  pool: pg.Pool
  codec: EventCodec
  applied: Pick<Applied, 'waitFor' | 'onAdvance'>
  clock: Clock
  logger: Logger
  skips: Pick<Skips, 'has'>
}

export interface RunningPlanner extends Pick<EventConsumer, 'status' | 'stop'> {
  /** Rejects while nothing can be raised, since the subscriptions are not known. */
  check(): Promise<void>
}

/**
 * Raises webhook events for what the sessions topic says, until stopped: those that an endpoint is subscribed to. All
 * others are in the read model of sessions, and are an organization's history without being sent to anybody. A record
 * that cannot be read, or that no event can be made of, halts its partition.
 */
export async function runPlanner(options: PlannerOptions): Promise<RunningPlanner> {
  const { log, codec, clock, logger, skips } = options
  const readModels = [
    { projection: 'webhooks', topic: eventTopics.WebhookEventRaised },
    { projection: 'sessions', topic: eventTopics.SessionScored },
  ]
  const caughtUp = createCaughtUp({ ...options, db: options.pool, readModels })
  const raiseBatch = createRaiseBatch({ ...options, caughtUp })
  const stopListening = options.applied.onAdvance('webhooks', raiseBatch.forgetQuiet)

  async function apply(batches: EventBatch[]): Promise<Position[]> {
    const now = clock()
    const events = batches.flatMap((batch) => batch.events)
    const again = await toldAgainBy(options, events.filter(isMove))
    await raiseBatch.raise([...events.flatMap((event) => candidatesOf(event, now)), ...again], now)
    return batches.map(({ topic, partition, end }) => ({ topic, partition, offset: end }))
  }

  const consumer = await consumeEvents({
    who: 'the planner of webhook events',
    group: plannerGroup,
    topics: [eventTopics.SessionScored],
    log,
    codec,
    logger,
    skips,
    gatherMs: 50,
    apply,
  })
  return {
    status: consumer.status,
    check: caughtUp.check,
    async stop() {
      await consumer.stop()
      stopListening()
    },
  }
}

// An event that may be raised, and the decision that tells it.
interface Candidate {
  id: string
  type: SessionEventType
  decision: Pick<SessionScored, 'event_id' | 'organization_id' | 'environment' | 'evaluated_at'>
  raise: (now: number) => Raised
  traceparent: string | undefined
}

function candidatesOf(event: RecordedEvent, now: number): Candidate[] {
  // Closed: it was erased, and nobody is told of it.
  if (event.type !== 'SessionScored' || event.closed !== undefined || !isRecent(event.data, now)) return []
  const { data: scored, meta } = event
  return toldTypes(scored).map((type) => ({
    id: webhookEventId(type, scored.session_id),
    type,
    decision: scored,
    raise: (now) => raise(scored, type, now),
    traceparent: meta.traceparent,
  }))
}

// Of a session that was given another visitor, the read model has what there is to tell.
async function toldAgainBy(
  { pool, applied }: Pick<PlannerOptions, 'pool' | 'applied'>,
  events: MoveEvent[],
): Promise<Candidate[]> {
  if (events.length === 0) return []
  await applied.waitFor(
    'sessions',
    events.map(({ position }) => position),
  )
  const moves = new Map(events.map(({ data }) => [toldAgain(data), data]))
  const rows = await findSessionEvents(pool, [...moves.keys()])
  return rows.flatMap((row) => {
    const move = moves.get(row.id)
    if (!move) return []
    const { organization_id, environment } = move
    const decision = { organization_id, environment, evaluated_at: movedAt(move), event_id: row.event_id }
    return [{ ...row, decision, raise: () => raiseAgain(row, move), traceparent: undefined }]
  })
}

interface RaiseDeps {
  log: EventLog
  pool: pg.Pool
  codec: EventCodec
  caughtUp: Pick<CaughtUp, 'waitUntilCaughtUp'>
}

interface RaiseBatch {
  raise(candidates: Candidate[], now: number): Promise<void>
  // An endpoint may have come, or changed what it is subscribed to.
  forgetQuiet(): void
}

interface Seen {
  // Ids of events that were raised, or that an earlier decision told when nobody was subscribed.
  known: Set<string>
  subscribers: Map<string, Subscriber[]>
}

// A session's decisions mostly follow each other within minutes; one that is forgotten costs a look-up.
const maxRemembered = 50_000
const quietMs = 1000

// An event must be raised once, however often its decision is read. The append and the consumer's offset are two commits,
// and after a crash between them the decision is read again. So the event's id follows from the session, and of an id the
// read model takes the first record, with the endpoints that it names. What is dropped here only keeps second records
// rare.
//
// The first decision that tells an event is final: an endpoint that was not subscribed then never gets it. An endpoint's
// creator was answered when the read model showed the endpoint, so the subscriptions are complete once the read model
// has caught up. Until then nothing is raised.
function createRaiseBatch({ log, pool, codec, caughtUp }: RaiseDeps): RaiseBatch {
  const recent = new LRUCache<string, true>({ max: maxRemembered })
  // Subscriptions that nobody had. All processes hear of a change when whoever made it does; the time bounds the rest.
  const quiet = new LRUCache<string, true>({ max: maxRemembered, ttl: quietMs })
  let changes = 0

  async function raiseNew(candidates: Candidate[], now: number): Promise<void> {
    const before = changes
    const { wanted, known, subscribers } = await look(candidates)
    const isSame = changes === before
    for (const [name, endpoints] of subscribers) if (isSame && endpoints.length === 0) quiet.set(name, true)
    const raised = wanted.filter(({ id }) => !known.has(id))
    if (raised.length === 0) return
    const events = await eventsOf({ raised, subscribers, now })
    const traces = new Map(raised.map(({ id, traceparent }) => [id, traceparent]))
    await enqueue(pool, events, traces)
    await codec.prepare(events.map((data) => ({ type: 'WebhookEventRaised', data })))
    await log.append(events.map((event) => recordOf(codec, event, traces.get(event.event_id))))
  }

  async function look(candidates: Candidate[]): Promise<Seen & { wanted: Candidate[] }> {
    await caughtUp.waitUntilCaughtUp()
    const subscribers = await subscribedEndpoints(pool, candidates.map(subscriptionOf))
    const wanted = candidates.filter((event) => toldEndpoints(event, subscribers).length > 0)
    const known = wanted.length > 0 ? await toldBefore(pool, wanted) : new Set<string>()
    return { wanted, subscribers, known }
  }

  return {
    async raise(candidates, now) {
      const unknown = firstOfEach(candidates.filter(({ id }) => !recent.has(id)))
      const heard = unknown.filter((candidate) => !quiet.has(subscriptionName(candidate)))
      if (heard.length > 0) await raiseNew(heard, now)
      // Not before the log has it: an append that failed is made again.
      for (const { id } of unknown) recent.set(id, true)
    },
    forgetQuiet() {
      changes += 1
      quiet.clear()
    },
  }
}

// Of these events, those that were raised, or that an earlier decision told when nobody was subscribed.
async function toldBefore(db: Db, candidates: Candidate[]): Promise<Set<string>> {
  const told = candidates.map(({ id, decision }) => ({ id, decisionId: decision.event_id }))
  const ids = told.map(({ id }) => id)
  const [raised, earlier] = await Promise.all([raisedEventIds(db, ids), earlierTold(db, told)])
  return new Set([...raised, ...earlier])
}

function firstOfEach(candidates: Candidate[]): Candidate[] {
  const first = new Map<string, Candidate>()
  for (const candidate of candidates) if (!first.has(candidate.id)) first.set(candidate.id, candidate)
  return [...first.values()]
}

const subscriptionOf = ({ decision, type }: Candidate) => ({
  organizationId: decision.organization_id,
  environment: decision.environment,
  type,
})

// As `subscribedEndpoints` names it.
const subscriptionName = ({ decision, type }: Candidate) =>
  `${decision.organization_id} ${decision.environment} ${type}`

// By the clocks of two servers.
const clockDifferenceMs = 60_000

// The ids of the endpoints that are told. None of them was made after the decision, which counts where the topic is read
// again.
function toldEndpoints(candidate: Candidate, subscribers: Seen['subscribers']): string[] {
  const all = subscribers.get(subscriptionName(candidate)) ?? []
  const before = candidate.decision.evaluated_at + clockDifferenceMs
  return all.filter(({ created_at }) => created_at <= before).map(({ id }) => id)
}

interface ToRaise extends Pick<Seen, 'subscribers'> {
  raised: Candidate[]
  now: number
}

async function eventsOf({ raised, subscribers, now }: ToRaise): Promise<WebhookEventRaised[]> {
  const breathe = createBreather()
  const events: WebhookEventRaised[] = []
  for (const candidate of raised) {
    const endpoint_ids = toldEndpoints(candidate, subscribers)
    events.push(orFailed(() => ({ ...candidate.raise(now), endpoint_ids })))
    await breathe()
  }
  return events
}

function recordOf(codec: EventCodec, data: WebhookEventRaised, traceparent: string | undefined): NewRecord {
  const { event_id: eventId, organization_id: organizationId, environment, created_at: now } = data
  const about = { organizationId, environment, eventId, now }
  const { event, meta } = decidedEvent({ type: 'WebhookEventRaised', data }, about)
  return orFailed(() => codec.toRecord(event, { ...meta, traceparent }))
}

// Nothing can be written down about the decision.
function orFailed<T>(work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw new EventFailed(error)
  }
}
