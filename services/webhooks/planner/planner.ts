import { LRUCache } from 'lru-cache'
import type pg from 'pg'
import type { Applied } from '../../../infra/event-store/applied.ts'
import { type DecodedBatch, decodeBatch } from '../../../infra/event-store/apply-batch.ts'
import { type CaughtUp, type CaughtUpOptions, createCaughtUp } from '../../../infra/event-store/catch-up.ts'
import type { EventCodec, RecordedEvent } from '../../../infra/event-store/codec.ts'
import { decidedEvent } from '../../../infra/event-store/decide.ts'
import {
  createPartitions,
  PartitionHalted,
  type PartitionStatus,
} from '../../../infra/event-store/partitions.ts'
import type { Clock } from '../../../infra/ids.ts'
import type { Batch, EventLog, NewRecord } from '../../../infra/log/port.ts'
import type { Logger } from '../../../infra/telemetry.ts'
import { createBreather } from '../../../infra/timing.ts'
import { raisedEventIds, subscribedEndpoints } from '../../../projections/webhooks/queries.ts'
import { eventTopics, type WebhookEventRaised } from '../../../schemas/events.ts'
import { enqueue } from '../dispatch/queue.ts'
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

export interface RunningPlanner {
  status(): PartitionStatus[]
  /** Rejects while nothing can be raised, since the subscriptions are not known. */
  check(): Promise<void>
  stop(): Promise<void>
}

/**
 * Raises webhook events for what the sessions topic says, until stopped. An organization without endpoints has events
 * too: they are its history. A record that cannot be read, or that no event can be made of, halts its partition.
 */
export async function runPlanner(options: PlannerOptions): Promise<RunningPlanner> {
  const { log, codec, clock, logger } = options
  const partitions = createPartitions({ who: 'the planner of webhook events', logger })
  const readModels = [{ projection: 'webhooks', topic: eventTopics.WebhookEventRaised }]
  const caughtUp = createCaughtUp({ ...options, db: options.pool, readModels })
  const raiseBatch = createRaiseBatch({ ...options, caughtUp })

  async function handleBatch(batch: Batch): Promise<undefined> {
    const { candidates, end, poison } = await read(decodeBatch(codec, batch), clock())
    await raiseBatch(candidates)
    const status = partitions.of(end)
    status.nextOffset = end.offset
    if (poison) partitions.halt(poison)
    status.halted = null
  }

  const consumer = await log.consume({
    group: 'tidegate.webhooks.planner',
    topics: [eventTopics.SessionScored],
    handleBatch,
    onError(err, position) {
      if (err instanceof PartitionHalted) return
      logger.warn({ err, position }, 'webhook events were not raised; the records will be read again')
    },
  })
  return { status: partitions.all, check: caughtUp.check, stop: () => consumer.stop() }
}

type Candidates = Omit<DecodedBatch, 'events'> & { candidates: Raised[] }

async function read({ events, end, poison }: DecodedBatch, now: number): Promise<Candidates> {
  const breathe = createBreather()
  const candidates: Raised[] = []
  for (const event of events) {
    try {
      candidates.push(...raisedBy(event, now))
    } catch (error) {
      return { candidates, end: event.position, poison: { position: event.position, error } }
    }
    await breathe()
  }
  return { candidates, end, poison }
}

function raisedBy(event: RecordedEvent, now: number): Raised[] {
  return event.type === 'SessionScored' && isRecent(event.data, now) ? raise(event.data, now) : []
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

  async function encode(events: WebhookEventRaised[]): Promise<NewRecord[]> {
    const breathe = createBreather()
    const records: NewRecord[] = []
    for (const event of events) {
      records.push(recordOf(codec, event))
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
    const events = unknown
      .filter(({ event_id }) => !known.has(event_id))
      .map((raised) => ({ ...raised, endpoint_ids: subscribers.get(subscriptionOf(raised)) ?? [] }))
    await enqueue(pool, events)
    const records = await encode(events)
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

function recordOf(codec: EventCodec, data: WebhookEventRaised): NewRecord {
  const { event_id: eventId, organization_id: organizationId, environment, created_at: now } = data
  const { event, meta } = decidedEvent(
    { type: 'WebhookEventRaised', data },
    { organizationId, environment, eventId, now },
  )
  return codec.toRecord(event, meta)
}
