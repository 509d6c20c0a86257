import type pg from 'pg'
import type { Applied } from '../../../infra/event-store/applied.ts'
import { type DecodedBatch, decodeBatch } from '../../../infra/event-store/apply-batch.ts'
import { type CaughtUpOptions, createCaughtUp } from '../../../infra/event-store/catch-up.ts'
import type { EventCodec, RecordedEvent } from '../../../infra/event-store/codec.ts'
import {
  createPartitions,
  PartitionHalted,
  type PartitionStatus,
} from '../../../infra/event-store/partitions.ts'
import type { Clock } from '../../../infra/ids.ts'
import type { Batch, EventLog } from '../../../infra/log/port.ts'
import type { Logger } from '../../../infra/telemetry.ts'
import { createBreather } from '../../../infra/timing.ts'
import { eventTopics } from '../../../schemas/events.ts'
import { isRecent, type Raised, raise } from './raise.ts'
import { createRaiseBatch } from './raise-batch.ts'

export interface PlannerOptions {
  log: EventLog
  pool: pg.Pool
  codec: EventCodec
  applied: Pick<Applied, 'waitFor'>
  clock: Clock
  logger: Logger
  /** Names the run of the database; for tests. */
  identify?: CaughtUpOptions['identify']
}

export interface RunningPlanner {
  /** The partitions that this process has met; for readiness. */
  status(): PartitionStatus[]
  /** Rejects while nothing can be raised, since it is not known to whom. */
  check(): Promise<void>
  stop(): Promise<void>
}

/**
 * Raises webhook events for what the sessions topic says, until stopped. Every organization's are raised, whether or
 * not it has endpoints: they are its event history. A record that cannot be read, or that no event can be made of,
 * halts its partition there, and no other.
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

/** What the records may raise, up to the first that cannot be dealt with. */
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
