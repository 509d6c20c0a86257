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
  findEventsOfOtherDecisions,
  findSessionEvents,
} from '../../../projections/sessions/session-events.ts'
import { raisedEventIds, subscribedEndpoints } from '../../../projections/webhooks/queries.ts'
import { eventTopics, type WebhookEventRaised } from '../../../schemas/events.ts'
import {
  candidateOfReassignment,
  candidatesOf,
  dedupeById,
  type EventCandidate,
  reassignmentsByEvent,
  stageOf,
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
 * Consumes the sessions topic and raises a webhook event for each decision or correction that an endpoint is subscribed
 * to, until stopped. Events without a subscriber are not raised; the API lists them from the sessions read model. A
 * record that cannot be read or turned into an event stops its partition.
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
    const ofDecisions = events.flatMap((event) => candidatesOf(event, now))
    const ofReassignments = await reassignmentCandidates(options, events.filter(isReassignment))
    await raiser.raise([...ofDecisions, ...ofReassignments], now)
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
  const reassignments = reassignmentsByEvent(events)
  const rows = await findSessionEvents(pool, [...reassignments.keys()])
  return rows.flatMap((row) => {
    const reassignment = reassignments.get(row.id)
    return reassignment ? [candidateOfReassignment(row, reassignment)] : []
  })
}

// Most decisions of a session follow each other within minutes. A cache miss costs a query.
const maxCached = 50_000
const unsubscribedTtlMs = 1000

// An event must be raised once, although its decision may be read again: the append and the consumer's offset are two
// commits, and the process may crash between them. So the event id is derived from the session, and the read model
// keeps the first record of an id, with the endpoints that it names. The caches here only make duplicate records rare.
//
// An endpoint that was not subscribed at the first decision never gets the event. Subscriptions are complete once the
// read model has caught up, because the request that creates an endpoint returns only when the read model has it. No
// event is raised before that.
function createRaiser({
  log,
  pool,
  codec,
  catchUpGate,
}: Pick<PlannerOptions, 'log' | 'pool' | 'codec'> & { catchUpGate: CatchUpGate }) {
  const settled = createLru<string, true>(maxCached)
  // Cleared by notifications, which reach all processes; the TTL covers a lost one.
  const unsubscribed = createLru<string, true>(maxCached, { ttl: unsubscribedTtlMs })
  let version = 0

  async function findDue(pending: EventCandidate[]): Promise<Due[]> {
    const versionBefore = version
    await catchUpGate.waitUntilCaughtUp()
    const subscribers = await subscribedEndpoints(pool, pending.map(subscriptionOf))
    const lookups = { settled, unsubscribed, subscribers }
    const subscribed = pending.filter(
      (candidate) => stageOf(candidate, lookups).name === 'subscribed',
    )
    const raised = subscribed.length > 0 ? await findSettled(pool, subscribed) : new Set<string>()
    const isUnchanged = version === versionBefore
    for (const [name, endpoints] of subscribers)
      if (isUnchanged && endpoints.length === 0) unsubscribed.set(name, true)
    return subscribed.flatMap((candidate) => {
      const stage = stageOf(candidate, { ...lookups, raised })
      return stage.name === 'due' ? [{ candidate, endpointIds: stage.endpointIds }] : []
    })
  }

  async function append(due: Due[], now: number): Promise<void> {
    const events = await buildEvents(due, now)
    const traces = new Map(due.map(({ candidate }) => [candidate.id, candidate.traceparent]))
    await codec.prepare(events.map((data) => ({ type: 'WebhookEventRaised', data })))
    await log.append(events.map((event) => recordOf(codec, event, traces.get(event.event_id))))
  }

  return {
    async raise(candidates: EventCandidate[], now: number): Promise<void> {
      const distinct = dedupeById(candidates)
      const pending = distinct.filter(
        (candidate) => stageOf(candidate, { settled, unsubscribed }).name === 'pending',
      )
      const due = pending.length > 0 ? await findDue(pending) : []
      if (due.length > 0) await append(due, now)
      // Only after the append, so that a failed append is retried.
      for (const { id } of distinct) settled.set(id, true)
    },
    /** Called when endpoints or their subscriptions may have changed. */
    forgetUnsubscribed(): void {
      version += 1
      unsubscribed.clear()
    },
  }
}

interface Due {
  candidate: EventCandidate
  endpointIds: string[]
}

/** Returns the ids of candidates that were raised before or whose event belongs to an earlier decision. */
async function findSettled(db: Db, candidates: EventCandidate[]): Promise<Set<string>> {
  const events = candidates.map(({ id, decision }) => ({ id, decisionId: decision.event_id }))
  const ids = events.map(({ id }) => id)
  const [raised, earlier] = await Promise.all([
    raisedEventIds(db, ids),
    findEventsOfOtherDecisions(db, events),
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

// Wraps an error in EventFailed, which stops the partition, because a retry would fail the same way.
function asEventFailure<T>(work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw new EventFailed(error)
  }
}
