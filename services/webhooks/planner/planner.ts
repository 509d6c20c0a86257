import type pg from 'pg'
import type { AppliedOffsets } from '../../../infra/event-store/applied.ts'
import { type CatchUpGate, createCatchUpGate } from '../../../infra/event-store/catch-up.ts'
import type { EventCodec } from '../../../infra/event-store/codec.ts'
import { consumeEvents, type EventConsumer } from '../../../infra/event-store/consumer.ts'
import { decidedEvent } from '../../../infra/event-store/decide.ts'
import { type EventBatch, EventFailed } from '../../../infra/event-store/event-batch.ts'
import type { Skips } from '../../../infra/event-store/skips.ts'
import type { Clock } from '../../../infra/ids.ts'
import type { EventLog, NewRecord, Position } from '../../../infra/log/port.ts'
import { createLru } from '../../../infra/lru.ts'
import type { Db } from '../../../infra/postgres/pool.ts'
import type { Logger } from '../../../infra/telemetry.ts'
import { createYielder } from '../../../infra/timing.ts'
import {
  isReassignment,
  type ReassignmentEvent,
} from '../../../projections/sessions/apply-reassignments.ts'
import {
  findEventsOfEarlierDecisions,
  findSessionEvents,
} from '../../../projections/sessions/session-events.ts'
import {
  findRaisedEventIds,
  findSubscribedEndpoints,
} from '../../../projections/webhooks/queries.ts'
import { eventTopics, type WebhookEventRaised } from '../../../schemas/events.ts'
import {
  candidateOfReassignment,
  candidatesOf,
  dedupeById,
  type EventCandidate,
  endpointsFor,
  reassignmentsByEventId,
  subscriptionName,
  subscriptionOf,
} from './candidates.ts'

export const plannerGroup = 'tidegate.webhooks.planner'

interface PlannerOptions {
  log: EventLog
  pool: pg.Pool
  codec: EventCodec
  applied: Pick<AppliedOffsets, 'waitFor' | 'onAdvance'>
  clock: Clock
  logger: Logger
  skips: Pick<Skips, 'has'>
}

export interface RunningPlanner extends Pick<EventConsumer, 'status' | 'stop'> {
  /** Rejects while no event can be raised, because the read models have not caught up for 10 seconds. */
  check(): Promise<void>
}

/**
 * Consumes the sessions topic until stopped, and raises a webhook event for each decision or correction that an
 * endpoint is subscribed to. Events without a subscriber are not raised; the API derives them from the sessions read
 * model. A record that cannot be read or converted stops its partition.
 */
export async function runPlanner(options: PlannerOptions): Promise<RunningPlanner> {
  const { log, codec, clock, logger, skips } = options
  const readModels = [
    { projection: 'webhooks', topic: eventTopics.WebhookEventRaised },
    { projection: 'sessions', topic: eventTopics.SessionScored },
  ]
  const catchUpGate = createCatchUpGate({ ...options, db: options.pool, readModels })
  const raiser = createRaiser({ ...options, catchUpGate })
  const stopListening = options.applied.onAdvance('webhooks', raiser.forgetUnsubscribed)

  async function apply(batches: EventBatch[]): Promise<Position[]> {
    const now = clock()
    const events = batches.flatMap((batch) => batch.events)
    const fromDecisions = events.flatMap((event) => candidatesOf(event, now))
    const fromReassignments = await reassignmentCandidates(options, events.filter(isReassignment))
    await raiser.raise([...fromDecisions, ...fromReassignments], now)
    return batches.map(({ topic, partition, end }) => ({ topic, partition, offset: end }))
  }

  const consumer = await consumeEvents({
    consumerName: 'the planner of webhook events',
    group: plannerGroup,
    topics: [eventTopics.SessionScored],
    log,
    codec,
    logger,
    skips,
    batchDelayMs: 50,
    apply,
  })
  return {
    status: consumer.status,
    check: catchUpGate.check,
    async stop() {
      await consumer.stop()
      stopListening()
    },
  }
}

async function reassignmentCandidates(
  { pool, applied }: Pick<PlannerOptions, 'pool' | 'applied'>,
  events: ReassignmentEvent[],
): Promise<EventCandidate[]> {
  if (events.length === 0) return []
  const positions = events.map(({ position }) => position)
  await applied.waitFor('sessions', positions)
  const reassignments = reassignmentsByEventId(events)
  const rows = await findSessionEvents(pool, [...reassignments.keys()])
  return rows.flatMap((row) => {
    const reassignment = reassignments.get(row.id)
    return reassignment ? [candidateOfReassignment(row, reassignment)] : []
  })
}

// A cache hit saves a query. Most decisions of a session are made within minutes of each other.
const maxCached = 50_000
const unsubscribedTtlMs = 1000

// Deduplication: the append and the commit of the consumer's offset are not atomic, so a decision can be consumed again
// after a crash. The event id is derived from the session, and the read model keeps the first record of an id with its
// endpoints. The caches only make duplicate records rare.
//
// Subscriptions: only endpoints that were subscribed at the first decision and accept it get the event. Events are
// raised only while the webhooks read model has caught up, because it then has every endpoint whose creation was
// acknowledged.
function createRaiser({
  log,
  pool,
  codec,
  catchUpGate,
}: Pick<PlannerOptions, 'log' | 'pool' | 'codec'> & { catchUpGate: CatchUpGate }) {
  const settled = createLru<string, true>(maxCached)
  // Cleared by notifications, which reach all processes; the TTL covers lost ones.
  const unsubscribed = createLru<string, true>(maxCached, { ttl: unsubscribedTtlMs })
  let subscriptionsVersion = 0

  async function findDue(candidates: EventCandidate[]): Promise<Due[]> {
    const versionBefore = subscriptionsVersion
    await catchUpGate.waitUntilCaughtUp()
    const subscribers = await findSubscribedEndpoints(pool, candidates.map(subscriptionOf))
    const isUnchanged = subscriptionsVersion === versionBefore
    for (const [name, endpoints] of subscribers)
      if (isUnchanged && endpoints.length === 0) unsubscribed.set(name, true)
    const subscribed = candidates
      .map((candidate) => ({ candidate, endpointIds: endpointsFor(candidate, subscribers) }))
      .filter(({ endpointIds }) => endpointIds.length > 0)
    if (subscribed.length === 0) return []
    const settledIds = await findSettled(pool, subscribed)
    return subscribed.filter(({ candidate }) => !settledIds.has(candidate.id))
  }

  async function append(due: Due[], now: number): Promise<void> {
    const events = await buildEvents(due, now)
    const traces = new Map(due.map(({ candidate }) => [candidate.id, candidate.traceparent]))
    await codec.prepareKeys(events.map((data) => ({ type: 'WebhookEventRaised', data })))
    await log.append(events.map((event) => recordOf(codec, event, traces.get(event.event_id))))
  }

  return {
    async raise(candidates: EventCandidate[], now: number): Promise<void> {
      const distinct = dedupeById(candidates)
      const pending = distinct.filter(
        (candidate) => !settled.has(candidate.id) && !unsubscribed.has(subscriptionName(candidate)),
      )
      const due = pending.length > 0 ? await findDue(pending) : []
      if (due.length > 0) await append(due, now)
      // After the append, so that a failed append is retried.
      for (const { id } of distinct) settled.set(id, true)
    },
    /** Called when endpoints or their subscriptions may have changed. */
    forgetUnsubscribed(): void {
      subscriptionsVersion += 1
      unsubscribed.clear()
    },
  }
}

interface Due {
  candidate: EventCandidate
  endpointIds: string[]
}

/** Returns the ids of candidates that were raised before, or whose event belongs to an earlier decision. */
async function findSettled(db: Db, subscribed: Due[]): Promise<Set<string>> {
  const events = subscribed.map(({ candidate: { id, decision } }) => ({
    id,
    decisionId: decision.event_id,
  }))
  const ids = events.map(({ id }) => id)
  const [raised, earlier] = await Promise.all([
    findRaisedEventIds(db, ids),
    findEventsOfEarlierDecisions(db, events),
  ])
  return new Set([...raised, ...earlier])
}

async function buildEvents(due: Due[], now: number): Promise<WebhookEventRaised[]> {
  const yieldToEventLoop = createYielder()
  const events: WebhookEventRaised[] = []
  for (const { candidate, endpointIds } of due) {
    events.push(asEventFailure(() => ({ ...candidate.build(now), endpoint_ids: endpointIds })))
    await yieldToEventLoop()
  }
  return events
}

function recordOf(
  codec: EventCodec,
  data: WebhookEventRaised,
  traceparent: string | undefined,
): NewRecord {
  const { event_id: eventId, organization_id: organizationId, environment, created_at: now } = data
  const about = { organizationId, environment, eventId, now }
  const { event, meta } = decidedEvent({ type: 'WebhookEventRaised', data }, about)
  return asEventFailure(() => codec.toRecord(event, { ...meta, traceparent }))
}

// Wraps errors in EventFailed, which stops the partition, because a retry would fail the same way.
function asEventFailure<T>(work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw new EventFailed(error)
  }
}
