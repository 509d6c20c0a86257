import type pg from 'pg'
import { lastBefore, notApplied } from '../../../infra/event-store/catch-up.ts'
import type { EventLog, Position } from '../../../infra/log/port.ts'
import { type Db, transaction } from '../../../infra/postgres/pool.ts'
import type { Logger } from '../../../infra/telemetry.ts'
import { runPeriodically } from '../../../infra/timing.ts'
import { eventTopics } from '../../../schemas/events.ts'
import { type ExpiredDelivery, findExpired, makeExpiredVisible, renewVisibility } from './visibility.ts'

/** The deliveries that this process has in flight: their requests run, or their records are on the way. */
export interface InFlight {
  size(): number
  requests(): number
  has(deliveryId: string): boolean
  ids(): string[]
  add(deliveryId: string): void
  endRequest(deliveryId: string): boolean
  /** Whether it was received again meanwhile: it is then hidden, and nobody renews it. */
  remove(deliveryId: string): boolean
  receivedAgain(deliveryId: string): void
  /** Those whose requests have ended, which the other processes do not see yet. */
  unreportedEnds(): string[]
  reported(deliveryIds: string[]): void
  /** Removes those whose requests still run, and returns them. */
  dropRequests(): string[]
  empty(): Promise<void>
}

export function createInFlight(): InFlight {
  const all = new Set<string>()
  const running = new Set<string>()
  const ended = new Set<string>()
  const again = new Set<string>()
  let waiting: (() => void)[] = []

  function notifyIfEmpty(): void {
    if (all.size > 0) return
    for (const resolve of waiting) resolve()
    waiting = []
  }

  return {
    size: () => all.size,
    requests: () => running.size,
    has: (id) => all.has(id),
    ids: () => [...all],
    add(id) {
      all.add(id)
      running.add(id)
    },
    endRequest(id) {
      if (!running.delete(id)) return false
      ended.add(id)
      return true
    },
    remove(id) {
      for (const set of [all, running, ended]) set.delete(id)
      notifyIfEmpty()
      return again.delete(id)
    },
    receivedAgain(id) {
      again.add(id)
    },
    unreportedEnds: () => [...ended],
    reported(ids) {
      for (const id of ids) ended.delete(id)
    },
    dropRequests() {
      const ids = [...running]
      running.clear()
      for (const id of ids) all.delete(id)
      notifyIfEmpty()
      return ids
    },
    async empty() {
      const { promise, resolve } = Promise.withResolvers<void>()
      waiting.push(resolve)
      notifyIfEmpty()
      return promise
    },
  }
}

interface VisibilityOptions {
  pool: pg.Pool
  log: Pick<EventLog, 'endPositions' | 'partitionOf'>
  owner: string
  visibilityTimeoutMs: number
  inFlight: InFlight
  logger: Logger
  onExpired: () => void
}

const expireEveryMs = 1000

/** Renews the visibility timeouts of this process, three times before one could expire, and ends those of dead ones. */
export function keepVisibility(options: VisibilityOptions): { stop(): Promise<void> } {
  const { logger, visibilityTimeoutMs } = options
  const expire = createExpiry(options)
  const renewing = runPeriodically({
    intervalMs: visibilityTimeoutMs / 3,
    look: () => renew(options),
    onError: (err) => logger.warn({ err }, 'webhook leases not renewed, trying again'),
  })
  const expiring = runPeriodically({
    intervalMs: Math.min(expireEveryMs, visibilityTimeoutMs / 2),
    look: () => free(expire, options),
    onError: (err) => logger.debug({ err }, 'expired webhook leases not freed, trying again'),
  })
  return {
    async stop() {
      await Promise.all([renewing.stop(), expiring.stop()])
    },
  }
}

async function renew({
  pool,
  owner,
  visibilityTimeoutMs,
  inFlight,
  logger,
}: VisibilityOptions): Promise<boolean> {
  const deliveryIds = inFlight.ids()
  if (deliveryIds.length === 0) return false
  const renewed = await renewVisibility(pool, { owner, deliveryIds, visibilityTimeoutMs })
  // One that has ended meanwhile is not in flight any more either.
  const lost = deliveryIds.filter((id) => !renewed.has(id) && inFlight.has(id))
  if (lost.length > 0)
    logger.warn({ leases: lost.length }, 'webhook leases expired, deliveries may be made twice')
  return false
}

async function free(
  expire: Expire,
  { inFlight, logger, onExpired }: Pick<VisibilityOptions, 'inFlight' | 'logger' | 'onExpired'>,
): Promise<boolean> {
  const freed = await expire({ except: inFlight.ids() })
  if (freed === 0) return false
  logger.info({ leases: freed }, 'expired webhook leases freed')
  onExpired()
  return false
}

interface ExpiryOptions {
  pool: pg.Pool
  log: Pick<EventLog, 'endPositions' | 'partitionOf'>
}

/** Makes deliveries visible whose dispatcher has died, but for those of `except`; returns how many. */
type Expire = (o: { except: string[] }) => Promise<number>

interface Candidate {
  delivery: ExpiredDelivery
  records: Position[]
}

const topic = eventTopics.WebhookDeliveryAttempted

/**
 * A delivery whose timeout has expired becomes visible once the read model shows what the log then had of its event.
 * The dead dispatcher may have recorded the delivery, which looks due until that record is applied. All of an event
 * is in one partition, so a partition that is halted delays no other. A look waits for nothing; what is not applied
 * yet is looked at again at the next, with the end of the log as of the first.
 */
function createExpiry({ pool, log }: ExpiryOptions): Expire {
  let known = new Map<string, Candidate>()

  async function candidates(expired: ExpiredDelivery[]): Promise<Candidate[]> {
    const fresh = expired.filter((delivery) => !known.has(keyOf(delivery)))
    // Read after the deliveries: their owners may have recorded something until they expired.
    const ends = fresh.length > 0 ? lastBefore(await log.endPositions(topic)) : []
    const partitions = await partitionsOf(fresh)
    const next = new Map<string, Candidate>()
    for (const delivery of expired) {
      const partition = partitions.get(delivery.deliveryId)
      // It is not known where the records of a delivery are that the read model does not show.
      const records = ends.filter((end) => partition === undefined || end.partition === partition)
      next.set(keyOf(delivery), known.get(keyOf(delivery)) ?? { delivery, records })
    }
    known = next
    return [...known.values()]
  }

  async function partitionsOf(deliveries: ExpiredDelivery[]): Promise<Map<string, number>> {
    const events = await eventsOf(
      pool,
      deliveries.map(({ deliveryId }) => deliveryId),
    )
    const found = events.map(async ({ deliveryId, eventId }): Promise<[string, number]> => {
      return [deliveryId, await log.partitionOf(topic, eventId)]
    })
    return new Map(await Promise.all(found))
  }

  return async ({ except }) => {
    const expired = await allExpired(pool, except)
    const waiting = await candidates(expired)
    if (waiting.length === 0) return 0
    // On one connection: it ends with a Postgres that crashes, so nothing is deleted by what it no longer shows.
    return transaction(pool, async (tx) => {
      const records = waiting.flatMap((candidate) => candidate.records)
      const behind = new Set(await notApplied(tx, 'webhooks', records))
      const isApplied = (candidate: Candidate) => !candidate.records.some((record) => behind.has(record))
      return makeExpiredVisible(
        tx,
        waiting.filter(isApplied).map(({ delivery }) => delivery),
      )
    })
  }
}

const pageSize = 1000

// Page by page, so that those that cannot become visible yet do not hide the others.
async function allExpired(db: Db, except: string[]): Promise<ExpiredDelivery[]> {
  const all: ExpiredDelivery[] = []
  for (;;) {
    const page = await findExpired(db, { except: [...except, ...all.map(({ deliveryId }) => deliveryId)] })
    all.push(...page)
    if (page.length < pageSize) return all
  }
}

async function eventsOf(db: Db, deliveryIds: string[]): Promise<{ deliveryId: string; eventId: string }[]> {
  if (deliveryIds.length === 0) return []
  const { rows } = await db.query<{ deliveryId: string; eventId: string }>({
    name: 'webhook-events-of',
    text: `select delivery_id as "deliveryId", event_id as "eventId" from read.webhook_deliveries
           where delivery_id = any($1)`,
    values: [deliveryIds],
  })
  return rows
}

const keyOf = ({ deliveryId, owner, expiresAt }: ExpiredDelivery) => `${deliveryId} ${owner} ${expiresAt}`
