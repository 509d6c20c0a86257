import type pg from 'pg'
import type { Applied } from '../../../infra/event-store/applied.ts'
import { catchUp, lastBefore, notApplied } from '../../../infra/event-store/catch-up.ts'
import { runPeriodically } from '../../../infra/flow/periodic.ts'
import type { Clock } from '../../../infra/ids.ts'
import type { EventLog } from '../../../infra/log/port.ts'
import { databaseNow } from '../../../infra/postgres/lease.ts'
import { type Db, type Tx, transaction, tryLock } from '../../../infra/postgres/pool.ts'
import type { Logger } from '../../../infra/telemetry.ts'
import { eventTopics } from '../../../schemas/events.ts'
import { enqueuePending, renew } from '../queue.ts'
import { lockQueue } from '../queue-table.ts'
import type { Dispatch } from './work.ts'

interface SweepOptions {
  pool: pg.Pool
  log: Pick<EventLog, 'endPositions' | 'partitionOf'>
  applied: Pick<Applied, 'waitFor'>
  clock: Clock
  monotonic?: () => number
}

const topic = eventTopics.WebhookDeliveryAttempted
// How long something is due before it may be wrong.
const lateMs = 10_000
// Between two searches for that, which read all that is due.
const lateSearchMs = 20_000
const pageSize = 10_000

/**
 * A row can be wrong: its process died, the database lost it, or it was never made. The log knows better. So the sweep
 * notes what may be wrong and waits until the read model has all that the log had by then. Then it makes those rows
 * anew. One process sweeps at a time, or one would bring back what another had sent meanwhile. The first sweep takes
 * what is due later, too, because the queue may be empty, as after an update. A sweep leaves out what is in flight here.
 */
export function createSweep(options: SweepOptions) {
  const { pool, log, applied, clock, monotonic = () => performance.now() } = options
  let isFirst = true
  let lateSearchAt = -Infinity

  /**
   * The deliveries of which the read model has all that the log has. All of an event is in one partition, so a partition
   * that is stopped delays no other. It is not known where the records of a delivery are that the read model lacks.
   */
  async function upToDate(tx: Tx, wrong: Wrong[]): Promise<string[]> {
    const records = lastBefore(await log.endPositions(topic))
    await catchUp(tx, { applied, projection: 'webhooks', records, timeoutMs: 1000 }).catch(() => {})
    const behind = new Set(
      (await notApplied(tx, 'webhooks', records)).map(({ partition }) => partition),
    )
    const found = wrong.map(async ({ deliveryId, eventId }) => {
      const isBehind =
        eventId === null ? behind.size > 0 : behind.has(await log.partitionOf(topic, eventId))
      return isBehind ? [] : [deliveryId]
    })
    return (await Promise.all(found)).flat()
  }

  async function findWrong(db: Db, inFlight: readonly string[]): Promise<Wrong[]> {
    const expired = await findExpired(db, inFlight)
    if (monotonic() < lateSearchAt) return expired
    // Set first, so that after a search that fails the next sweeps are for what has expired.
    lateSearchAt = monotonic() + lateSearchMs
    const lateSince = clock() - lateMs
    const missingUntil = isFirst ? Number.MAX_SAFE_INTEGER : lateSince
    const late = await findLate(db, { lateSince, missingUntil })
    if (late.length === pageSize) lateSearchAt = -Infinity
    return [...expired, ...late]
  }

  return (inFlight: readonly string[]) =>
    transaction(pool, async (tx) => {
      if (!(await tryLock(tx, 'tidegate:webhook-sweep'))) return { count: 0, hasMore: false }
      const wrong = await findWrong(tx, inFlight)
      const known = wrong.length === 0 ? [] : await upToDate(tx, wrong)
      if (known.length > 0) await remake(tx, known)
      const hasMore = known.length >= pageSize
      isFirst &&= hasMore
      return { count: known.length, hasMore }
    })
}

interface Wrong {
  deliveryId: string
  /** null where the read model lacks the delivery. */
  eventId: string | null
}

async function findExpired(db: Db, except: readonly string[]): Promise<Wrong[]> {
  const { rows } = await db.query<Wrong>({
    name: 'webhook-expired',
    text: `
      select q.delivery_id as "deliveryId", d.event_id as "eventId"
      from tidegate.webhook_queue q left join read.webhook_deliveries d using (delivery_id)
      where q.owner is not null and q.expires_at < ${databaseNow} and q.delivery_id <> all($1)
      limit ${pageSize}`,
    values: [except],
  })
  return rows
}

// Rows that nobody has taken are checked when they were due by `lateSince` (epoch milliseconds), and deliveries without
// a row when they are due by `missingUntil`.
async function findLate(
  db: Db,
  { lateSince, missingUntil }: { lateSince: number; missingUntil: number },
): Promise<Wrong[]> {
  const { rows } = await db.query<Wrong>({
    name: 'webhook-late',
    text: `
      select q.delivery_id as "deliveryId", d.event_id as "eventId"
      from tidegate.webhook_queue q left join read.webhook_deliveries d using (delivery_id)
      where q.owner is null and q.due_at <= $1 and (d.status = 'pending' and d.attempts = q.attempts) is not true
      union all
      select d.delivery_id, d.event_id from read.webhook_deliveries d
      where d.next_attempt_at <= $2
        and not exists (select from tidegate.webhook_queue q where q.delivery_id = d.delivery_id)
      limit ${pageSize}`,
    values: [lateSince, missingUntil],
  })
  return rows
}

// A row whose lease was renewed meanwhile stays.
async function remake(tx: Tx, deliveryIds: readonly string[]): Promise<void> {
  await lockQueue(tx)
  await tx.query(
    `delete from tidegate.webhook_queue
     where delivery_id = any($1) and (owner is null or expires_at < ${databaseNow})`,
    [deliveryIds],
  )
  await enqueuePending(tx, deliveryIds)
}

interface KeepOptions extends SweepOptions {
  owner: string
  leaseMs: number
  work: Pick<Dispatch, 'inFlight'>
  logger: Logger
  onSwept: () => void
}

const sweepEveryMs = 1000

/** Renews the leases of this process, three times before one could expire, and puts the queue right. */
export function keepQueue(options: KeepOptions): { stop(): Promise<void> } {
  const { pool, owner, leaseMs, work, logger, onSwept } = options
  const sweep = createSweep(options)
  const renewing = runPeriodically({
    intervalMs: leaseMs / 3,
    async work() {
      const deliveryIds = work.inFlight()
      if (deliveryIds.length === 0) return false
      const renewed = await renew(pool, { owner, deliveryIds, leaseMs })
      // One that has ended meanwhile is not in flight any more either.
      const still = new Set(work.inFlight())
      const lost = deliveryIds.filter((id) => !renewed.has(id) && still.has(id))
      if (lost.length > 0)
        logger.warn({ leases: lost.length }, 'webhook leases expired, deliveries may be made twice')
      return false
    },
    onError: (err) => logger.warn({ err }, 'webhook leases not renewed, trying again'),
  })
  const sweeping = runPeriodically({
    intervalMs: Math.min(sweepEveryMs, leaseMs / 2),
    async work() {
      const { count, hasMore } = await sweep(work.inFlight())
      if (count === 0) return false
      logger.info({ deliveries: count }, 'the queue of webhooks was put right')
      onSwept()
      return hasMore
    },
    onError: (err) =>
      logger.debug({ err }, 'the queue of webhooks was not put right, trying again'),
  })
  return {
    async stop() {
      await Promise.all([renewing.stop(), sweeping.stop()])
    },
  }
}
