import { LRUCache } from 'lru-cache'
import type pg from 'pg'
import type { Applied } from '../../../infra/event-store/applied.ts'
import { type CaughtUp, type CaughtUpOptions, createCaughtUp } from '../../../infra/event-store/catch-up.ts'
import type { EventCodec, RecordedEvent } from '../../../infra/event-store/codec.ts'
import {
  consumeEvents,
  type EventBatch,
  type EventConsumer,
  EventFailed,
} from '../../../infra/event-store/consumer.ts'
import { decidedEvent } from '../../../infra/event-store/decide.ts'
import type { Clock } from '../../../infra/ids.ts'
import type { EventLog, NewRecord, Position } from '../../../infra/log/port.ts'
import type { Logger } from '../../../infra/telemetry.ts'
import { createBreather } from '../../../infra/timing.ts'
import { raisedEventIds, subscribedEndpoints } from '../../../projections/webhooks/queries.ts'
import { eventTopics } from '../../../schemas/events.ts'
import { isRecent, type Raised, raise } from './raise.ts'

interface PlannerOptions {
  log: EventLog
  pool: pg.Pool
  codec: EventCodec
  applied: Pick<Applied, 'waitFor'>
  clock: Clock
  logger: Logger
  identify?: CaughtUpOptions['identify']
}

export interface RunningPlanner extends Pick<EventConsumer, 'status' | 'stop'> {
  /** Rejects while nothing can be raised, since the subscriptions are not known. */
  check(): Promise<void>
}

/**
 * Raises webhook events for what the sessions topic says, until stopped. An organization without endpoints has events
 * too: they are its history. A record that cannot be read, or that no event can be made of, halts its partition.
 */
export async function runPlanner(options: PlannerOptions): Promise<RunningPlanner> {
  const { log, codec, clock, logger } = options
  const readModels = [{ projection: 'webhooks', topic: eventTopics.WebhookEventRaised }]
  const caughtUp = createCaughtUp({ ...options, db: options.pool, readModels })
  const raiseBatch = createRaiseBatch({ ...options, caughtUp })

  async function apply(batches: EventBatch[]): Promise<Position[]> {
    await raiseBatch(
      await candidatesOf(
        batches.flatMap(({ events }) => events),
        clock(),
      ),
    )
    return batches.map(({ topic, partition, end }) => ({ topic, partition, offset: end }))
  }

  const consumer = await consumeEvents({
    who: 'the planner of webhook events',
    group: 'tidegate.webhooks.planner',
    topics: [eventTopics.SessionScored],
    log,
    codec,
    logger,
    apply,
  })
  return { status: consumer.status, check: caughtUp.check, stop: consumer.stop }
}

async function candidatesOf(events: RecordedEvent[], now: number): Promise<Raised[]> {
  const breathe = createBreather()
  const candidates: Raised[] = []
  for (const event of events) {
    candidates.push(...raisedBy(event, now))
    await breathe()
  }
  return candidates
}

function raisedBy(event: RecordedEvent, now: number): Raised[] {
  if (event.type !== 'SessionScored' || !isRecent(event.data, now)) return []
  try {
    return raise(event.data, now)
  } catch (error) {
    throw new EventFailed(error)
  }
}

interface RaiseDeps {
  log: EventLog
  pool: pg.Pool
  codec: EventCodec
  caughtUp: Pick<CaughtUp, 'waitUntilCaughtUp' | 'isUnchanged'>
}

type RaiseBatch = (candidates: Raised[]) => Promise<void>

interface Seen {
  known: Set<string>
  subscribers: Map<string, string[]>
}

// A session's decisions mostly follow each other within minutes; one that is forgotten costs a look-up.
const maxRemembered = 50_000

/**
 * An event must be raised once, however often its decision is read. The append and the consumer's offset are two commits,
 * and after a crash between them the decision is read again. So the event's id follows from the session, and of an id the
 * read model takes the first record, with the endpoints that it names. What is dropped here only keeps second records
 * rare.
 *
 * The first record is final: an endpoint that it leaves out never gets the event. An endpoint's creator was answered when
 * the read model showed the endpoint, so the subscriptions are complete once the read model has caught up. Until then
 * nothing is raised.
 */
function createRaiseBatch({ log, pool, codec, caughtUp }: RaiseDeps): RaiseBatch {
  const recent = new LRUCache<string, true>({ max: maxRemembered })

  async function encode(raised: Raised[], subscribers: Map<string, string[]>): Promise<NewRecord[]> {
    const breathe = createBreather()
    const records: NewRecord[] = []
    for (const event of raised) {
      records.push(recordOf(codec, event, subscribers.get(subscriptionOf(event)) ?? []))
      await breathe()
    }
    return records
  }

  async function look(unknown: Raised[]): Promise<Seen> {
    const identity = await caughtUp.waitUntilCaughtUp()
    const ids = unknown.map(({ event_id }) => event_id)
    const wanted = unknown.map(({ organization_id: organizationId, environment, type }) => ({
      organizationId,
      environment,
      type,
    }))
    const [known, subscribers] = await Promise.all([
      raisedEventIds(pool, ids),
      subscribedEndpoints(pool, wanted),
    ])
    // Asked last: the database may have gone back before what was just read.
    return (await caughtUp.isUnchanged(identity)) ? { known, subscribers } : look(unknown)
  }

  return async (candidates) => {
    const unknown = firstOfEach(candidates.filter(({ event_id }) => !recent.has(event_id)))
    if (unknown.length === 0) return
    const { known, subscribers } = await look(unknown)
    const records = await encode(
      unknown.filter(({ event_id }) => !known.has(event_id)),
      subscribers,
    )
    if (records.length > 0) await log.append(records)
    // Not before the log has it: an append that failed is made again.
    for (const { event_id } of unknown) recent.set(event_id, true)
  }
}

function firstOfEach(candidates: Raised[]): Raised[] {
  const first = new Map<string, Raised>()
  for (const raised of candidates) if (!first.has(raised.event_id)) first.set(raised.event_id, raised)
  return [...first.values()]
}

// As `subscribedEndpoints` names it.
const subscriptionOf = ({ organization_id, environment, type }: Raised) =>
  `${organization_id} ${environment} ${type}`

function recordOf(codec: EventCodec, raised: Raised, endpointIds: string[]): NewRecord {
  const { event_id: eventId, organization_id: organizationId, environment, created_at: now } = raised
  const data = { ...raised, endpoint_ids: endpointIds }
  const { event, meta } = decidedEvent(
    { type: 'WebhookEventRaised', data },
    { organizationId, environment, eventId, now },
  )
  return codec.toRecord(event, meta)
}
