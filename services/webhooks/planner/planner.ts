import type pg from 'pg'
import type { Applied } from '../../../infra/event-store/applied.ts'
import { type CaughtUp, createCaughtUp } from '../../../infra/event-store/catch-up.ts'
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
import { createBreather } from '../../../infra/timing.ts'
import {
  isReassignment,
  type ReassignmentEvent,
} from '../../../projections/sessions/apply-reassignments.ts'
import {
  findSessionEvents,
  ofEarlierDecisions,
} from '../../../projections/sessions/session-events.ts'
import { raisedEventIds, subscribedEndpoints } from '../../../projections/webhooks/queries.ts'
import { eventTopics, type WebhookEventRaised } from '../../../schemas/events.ts'
import {
  candidateOfReassignment,
  candidatesOf,
  type EventCandidate,
  firstOfEach,
  reassignmentsByEvent,
  stageOf,
  subscriptionOf,
} from './candidates.ts'

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
 * that cannot be read, or that no event can be made of, stops its partition.
 */
export async function runPlanner(options: PlannerOptions): Promise<RunningPlanner> {
  const { log, codec, clock, logger, skips } = options
  const readModels = [
    { projection: 'webhooks', topic: eventTopics.WebhookEventRaised },
    { projection: 'sessions', topic: eventTopics.SessionScored },
  ]
  const caughtUp = createCaughtUp({ ...options, db: options.pool, readModels })
  const raising = createRaising({ ...options, caughtUp })
  const stopListening = options.applied.onAdvance('webhooks', raising.forgetUnsubscribed)

  async function apply(batches: EventBatch[]): Promise<Position[]> {
    const now = clock()
    const events = batches.flatMap((batch) => batch.events)
    const reassigned = await candidatesOfReassignments(options, events.filter(isReassignment))
    await raising.raise(
      [...events.flatMap((event) => candidatesOf(event, now)), ...reassigned],
      now,
    )
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

async function candidatesOfReassignments(
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

// A session's decisions mostly follow each other within minutes; one that is forgotten costs a look-up.
const maxRemembered = 50_000
const unsubscribedMs = 1000

// An event must be raised once, however often its decision is read. The append and the consumer's offset are two commits,
// and after a crash between them the decision is read again. So the event's id follows from the session, and of an id the
// read model takes the first record, with the endpoints that it names. What is dropped here only keeps second records
// rare.
//
// An endpoint that was not subscribed at the first decision never gets the event. An endpoint's creator was answered when
// the endpoint was in the read model, so the subscriptions are complete once the read model has caught up. Until then
// nothing is raised.
function createRaising({
  log,
  pool,
  codec,
  caughtUp,
}: Pick<PlannerOptions, 'log' | 'pool' | 'codec'> & { caughtUp: CaughtUp }) {
  const settled = createLru<string, true>(maxRemembered)
  // All processes are notified of a change when whoever made it is; the time bounds what they miss.
  const unsubscribed = createLru<string, true>(maxRemembered, { ttl: unsubscribedMs })
  let changes = 0

  async function findDue(pending: EventCandidate[]): Promise<Due[]> {
    const before = changes
    await caughtUp.waitUntilCaughtUp()
    const subscribers = await subscribedEndpoints(pool, pending.map(subscriptionOf))
    const known = { settled, unsubscribed, subscribers }
    const subscribed = pending.filter((one) => stageOf(one, known).name === 'subscribed')
    const raised = subscribed.length > 0 ? await raisedBefore(pool, subscribed) : new Set<string>()
    const isSame = changes === before
    for (const [name, endpoints] of subscribers)
      if (isSame && endpoints.length === 0) unsubscribed.set(name, true)
    return subscribed.flatMap((candidate) => {
      const stage = stageOf(candidate, { ...known, raised })
      return stage.name === 'due' ? [{ candidate, endpointIds: stage.endpointIds }] : []
    })
  }

  async function append(due: Due[], now: number): Promise<void> {
    const events = await eventsOf(due, now)
    const traces = new Map(due.map(({ candidate }) => [candidate.id, candidate.traceparent]))
    await codec.prepare(events.map((data) => ({ type: 'WebhookEventRaised', data })))
    await log.append(events.map((event) => recordOf(codec, event, traces.get(event.event_id))))
  }

  return {
    async raise(candidates: EventCandidate[], now: number): Promise<void> {
      const fresh = firstOfEach(candidates)
      const pending = fresh.filter(
        (one) => stageOf(one, { settled, unsubscribed }).name === 'pending',
      )
      const due = pending.length > 0 ? await findDue(pending) : []
      if (due.length > 0) await append(due, now)
      // Not before the log has it: an append that failed is made again.
      for (const { id } of fresh) settled.set(id, true)
    },
    /** An endpoint may have come, or changed what it is subscribed to. */
    forgetUnsubscribed(): void {
      changes += 1
      unsubscribed.clear()
    },
  }
}

interface Due {
  candidate: EventCandidate
  endpointIds: string[]
}

async function raisedBefore(db: Db, candidates: EventCandidate[]): Promise<Set<string>> {
  const events = candidates.map(({ id, decision }) => ({ id, decisionId: decision.event_id }))
  const ids = events.map(({ id }) => id)
  const [raised, earlier] = await Promise.all([
    raisedEventIds(db, ids),
    ofEarlierDecisions(db, events),
  ])
  return new Set([...raised, ...earlier])
}

async function eventsOf(due: Due[], now: number): Promise<WebhookEventRaised[]> {
  const breathe = createBreather()
  const events: WebhookEventRaised[] = []
  for (const { candidate, endpointIds } of due) {
    events.push(orFailed(() => ({ ...candidate.raise(now), endpoint_ids: endpointIds })))
    await breathe()
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
  return orFailed(() => codec.toRecord(event, { ...meta, traceparent }))
}

// The decision cannot be made into an event, whatever is tried, so its partition stops.
function orFailed<T>(work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw new EventFailed(error)
  }
}
