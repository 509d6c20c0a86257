import type pg from 'pg'
import type { CaughtUp } from '../../../infra/event-store/catch-up.ts'
import type { Clock } from '../../../infra/ids.ts'
import type { Logger } from '../../../infra/telemetry.ts'
import type { WebhookMeter } from '../metrics.ts'
import { type ConcurrencyLimits, maxRequests } from './concurrency.ts'
import { type Job, loadJobs, type OnEnd } from './deliver.ts'
import type { InFlight } from './in-flight.ts'
import type { FreeRequests, ReceivedBatch, ReceivedDelivery } from './queue.ts'
import { endRequests, makeVisible } from './visibility.ts'

export interface WorkOptions extends AdmissionOptions {
  caughtUp: Pick<CaughtUp, 'waitUntilCaughtUp' | 'isUnchanged'>
  receive: (request: FreeRequests) => Promise<ReceivedBatch>
  deliver: (job: Job, onEnd: OnEnd) => Promise<void>
  clock: Clock
  meter: WebhookMeter
  /** A request has ended, and more is due than could be received before: time to work again within so many milliseconds. */
  onFree: (withinMs: number) => void
}

/** Deliveries in flight beside those whose requests run: their records are on the way, or wait for a log that is away. */
const maxUnrecorded = 256
const pollMs = 500
// To receive one delivery costs as much as to receive many, so a few free requests wait for some more.
const worthwhile = 8
const lingerMs = 15

/**
 * Receives what is due and starts it; returns after how many milliseconds to look again at the latest. Rejects while the
 * read models have not caught up: in a database that is filled from the log again, every delivery ever made looks due.
 */
export function createWork(options: WorkOptions): () => Promise<number> {
  const {
    pool,
    owner,
    inFlight,
    limits,
    clock,
    logger,
    meter,
    onFree,
    monotonic = () => performance.now(),
  } = options
  const admit = createAdmission(options)
  let hasMore = false
  let freed = 0

  const isWorthwhile = () => freed >= Math.min(worthwhile, inFlight.requests())

  function ended(endpointId: string, id: string): OnEnd {
    return (end) => {
      limits.ended(endpointId, end)
      const isOurs = inFlight.endRequest(id)
      meter.onSending(inFlight.requests())
      freed++
      if (hasMore) onFree(isWorthwhile() ? 0 : lingerMs)
      return isOurs
    }
  }

  async function make(job: Job): Promise<void> {
    const { id, endpointId } = job.delivery
    await options.deliver(job, ended(endpointId, id)).catch((err) => {
      // Nothing is known of it, so it is made again when its visibility timeout expires.
      logger.error({ err, deliveryId: id }, 'a webhook delivery ended in an unexpected error')
    })
    if (!inFlight.remove(id)) return
    await makeVisible(pool, { owner, deliveryIds: [id] })
    onFree(0)
  }

  /** Lowers the count of requests at the endpoints, which `receive` does otherwise. */
  async function reportEnds(): Promise<void> {
    const deliveryIds = inFlight.unreportedEnds()
    if (deliveryIds.length === 0) return
    await endRequests(pool, { owner, deliveryIds })
    inFlight.reported(deliveryIds)
  }

  async function begin(free: number): Promise<ReceivedBatch> {
    const identity = await options.caughtUp.waitUntilCaughtUp()
    freed = 0
    const receivedAt = monotonic()
    const ended = inFlight.unreportedEnds()
    const received = await options.receive({ free, ended })
    inFlight.reported(ended)
    const jobs = await admit({ deliveries: received.deliveries, identity, receivedAt })
    meter.onSending(inFlight.requests())
    for (const job of jobs)
      void make(job).catch((err) => logger.debug({ err }, 'a webhook delivery stays hidden'))
    return received
  }

  return async () => {
    const free = Math.min(maxRequests - inFlight.requests(), maxRequests + maxUnrecorded - inFlight.size())
    if (free <= 0) {
      await reportEnds()
      return pollMs
    }
    const received = await begin(free)
    hasMore = received.hasMore
    return Math.max(0, Math.min(pollMs, received.nextAt - clock()))
  }
}

interface AdmissionOptions {
  pool: pg.Pool
  owner: string
  visibilityTimeoutMs: number
  inFlight: InFlight
  limits: ConcurrencyLimits
  caughtUp: Pick<CaughtUp, 'isUnchanged'>
  logger: Logger
  signal: AbortSignal
  monotonic?: (() => number) | undefined
}

interface AdmissionRequest {
  deliveries: ReceivedDelivery[]
  identity: string
  receivedAt: number
}

/** What is to be begun, at once, of what was received; the rest is in flight no longer. */
type Admit = (request: AdmissionRequest) => Promise<Job[]>

/**
 * Looks at what was received before anything is sent. It becomes visible again when the database is not the one that
 * had caught up: there, deliveries made long ago may look due. So it does when half the visibility timeout has passed,
 * as in a process that was suspended: another process may have made the delivery since.
 */
export function createAdmission({
  monotonic = () => performance.now(),
  ...options
}: AdmissionOptions): Admit {
  const { pool, owner, visibilityTimeoutMs, inFlight, limits, caughtUp, logger, signal } = options

  function begin({ id, endpointId }: ReceivedDelivery): void {
    inFlight.add(id)
    limits.began(endpointId)
  }

  function end({ id, endpointId }: ReceivedDelivery): void {
    inFlight.remove(id)
    limits.ended(endpointId)
  }

  async function putBack(deliveries: ReceivedDelivery[]): Promise<void> {
    deliveries.forEach(end)
    await makeVisible(pool, { owner, deliveryIds: deliveries.map(({ id }) => id) })
  }

  /** It stays hidden and is not renewed, so that it is looked at again when its timeout has expired, and not before. */
  function leave(delivery: ReceivedDelivery): void {
    const { id: deliveryId, eventId, endpointId, organizationId } = delivery
    const line = { organizationId, eventId, deliveryId, endpointId }
    logger.warn(line, 'a webhook waits: the read model does not show its event, endpoint or organization')
    end(delivery)
  }

  async function jobsIfOurs(
    fresh: ReceivedDelivery[],
    request: AdmissionRequest,
  ): Promise<Job[] | undefined> {
    const jobs = await loadJobs(pool, fresh)
    // Asked last: the database may have gone back before what was just read.
    const isStill = await caughtUp.isUnchanged(request.identity)
    const isFresh = monotonic() - request.receivedAt < visibilityTimeoutMs / 2
    return isStill && isFresh && !signal.aborted ? jobs : undefined
  }

  return async (request) => {
    const fresh = request.deliveries.filter(({ id }) => !inFlight.has(id))
    // Its timeout expired while its request goes on, or it was asked for again before this process knew that it had ended.
    for (const { id } of request.deliveries) if (inFlight.has(id)) inFlight.receivedAgain(id)
    if (fresh.length === 0) return []
    fresh.forEach(begin)
    const jobs = await jobsIfOurs(fresh, request).catch(async (error) => {
      await putBack(fresh)
      throw error
    })
    if (!jobs) {
      await putBack(fresh)
      return []
    }
    const known = new Set(jobs.map(({ delivery }) => delivery.id))
    for (const delivery of fresh) if (!known.has(delivery.id)) leave(delivery)
    return jobs
  }
}

const retryMs = 500
const notReadyAfterMs = 10_000

interface WorkHealth {
  succeeded(ms: number): number
  /** Work failed; returns after how many milliseconds to try again. */
  failed(error: unknown): number
  check(): Promise<void>
}

export function createWorkHealth(logger: Logger): WorkHealth {
  let since: number | undefined
  return {
    succeeded(ms) {
      if (since !== undefined) logger.info('webhooks are taken again')
      since = undefined
      return ms
    },
    failed(err) {
      if (since === undefined) logger.warn({ err }, 'webhooks cannot be taken, trying again')
      since ??= performance.now()
      return retryMs
    },
    async check() {
      if (since === undefined || performance.now() - since < notReadyAfterMs) return
      throw new Error('webhooks cannot be taken')
    },
  }
}
