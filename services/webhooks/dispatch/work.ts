import type pg from 'pg'
import type { CaughtUp } from '../../../infra/event-store/catch-up.ts'
import type { Clock } from '../../../infra/ids.ts'
import type { Logger } from '../../../infra/telemetry.ts'
import type { GiveUp } from '../endpoints/give-up.ts'
import type { WebhookMeter } from '../metrics.ts'
import { type ConcurrencyLimits, maxRequests } from './concurrency.ts'
import { type Job, loadJobs, type MadeDelivery } from './deliver.ts'
import { dueEndpoints, putBack, type TakenDelivery, take } from './queue.ts'
import type { Recorder } from './recorder.ts'

export interface WorkOptions {
  pool: pg.Pool
  owner: string
  leaseMs: number
  limits: ConcurrencyLimits
  caughtUp: Pick<CaughtUp, 'waitUntilCaughtUp'>
  deliver: (job: Job) => Promise<MadeDelivery>
  recorder: Pick<Recorder, 'record' | 'ids' | 'has'>
  giveUp: Pick<GiveUp, 'look'>
  clock: Clock
  logger: Logger
  meter: Pick<WebhookMeter, 'onSending'>
  signal: AbortSignal
  /** More may be taken than at the last look. */
  onFree: () => void
  monotonic?: () => number
}

export interface Dispatch {
  /**
   * Takes what is due and starts it; returns after how many milliseconds to look again at the latest. Rejects while the
   * read models have not caught up: in a database that is filled from the log again, every delivery ever made looks due.
   */
  look(): Promise<number>
  /** The deliveries in flight here: their requests run, or their records are on the way. */
  inFlight(): string[]
  /** Those whose requests run, from now on in flight no longer. */
  dropRequests(): string[]
}

/** Deliveries in flight beside those whose requests run: their records are on the way, or wait for a log that is away. */
const maxUnrecorded = 256
const pollMs = 500

export function createWork(options: WorkOptions): Dispatch {
  const { pool, owner, leaseMs, limits, caughtUp, recorder, clock, logger, meter, signal } = options
  const { monotonic = () => performance.now() } = options
  const sending = new Set<string>()
  const inFlight = () => [...sending, ...recorder.ids()]
  let hasMore = false

  /** Nothing is known of it, so it is made again when its visibility timeout expires. */
  function unexpected(err: unknown, { delivery: { id: deliveryId } }: Job): undefined {
    logger.error({ err, deliveryId }, 'a webhook delivery ended in an unexpected error')
  }

  async function make(job: Job): Promise<void> {
    const { id, endpointId } = job.delivery
    const made = await options.deliver(job).catch((err) => unexpected(err, job))
    limits.ended(endpointId, made && requestEnd(made))
    const isOurs = sending.delete(id)
    meter.onSending(sending.size)
    if (!made || !isOurs) return
    made.report()
    await recorder.record(made)
    if (made.judged) void options.giveUp.look(made.judged)
    if (hasMore || made.nextAttemptAt !== null) options.onFree()
  }

  /** It stays hidden and is not renewed, so that it is looked at again when its timeout has expired, and not before. */
  function leave({ id: deliveryId, eventId, endpointId, organizationId }: TakenDelivery): void {
    const line = { organizationId, eventId, deliveryId, endpointId }
    logger.warn(line, 'a webhook waits: the read model does not show its event, endpoint or organization')
  }

  function begin(taken: readonly TakenDelivery[], jobs: readonly Job[]): void {
    const known = new Set(jobs.map(({ delivery }) => delivery.id))
    for (const delivery of taken) if (!known.has(delivery.id)) leave(delivery)
    for (const job of jobs) {
      sending.add(job.delivery.id)
      limits.began(job.delivery.endpointId)
    }
    meter.onSending(sending.size)
    for (const job of jobs) void make(job).catch((err) => unexpected(err, job))
  }

  /**
   * Nothing is sent when half the visibility timeout has passed, as in a process that was suspended: another process may
   * have made the delivery since.
   */
  async function start(taken: readonly TakenDelivery[], takenAt: number): Promise<void> {
    // A database that lost its last commits gives once more what is in flight here.
    const fresh = taken.filter(({ id }) => !sending.has(id) && !recorder.has(id))
    if (fresh.length === 0) return
    const jobs = await loadJobs(pool, fresh)
    const isFresh = monotonic() - takenAt < leaseMs / 2
    if (isFresh && !signal.aborted) return begin(fresh, jobs)
    await putBack(pool, { owner, deliveryIds: fresh.map(({ id }) => id) })
  }

  async function look(): Promise<number> {
    const free = Math.min(maxRequests - sending.size, maxRequests + maxUnrecorded - inFlight().length)
    if (free <= 0) return pollMs
    await caughtUp.waitUntilCaughtUp()
    const now = clock()
    const due = await dueEndpoints(pool, { now })
    const { quotas, pausedMs, ...rest } = limits.allocate(due.endpoints, free)
    hasMore = rest.hasMore
    const at = monotonic()
    if (quotas.length > 0) await start(await take(pool, { owner, leaseMs, quotas, free, now }), at)
    return Math.max(0, Math.min(pollMs, due.nextAt - now, Math.ceil(pausedMs)))
  }

  return {
    look,
    inFlight,
    dropRequests() {
      const ids = [...sending]
      sending.clear()
      return ids
    },
  }
}

function requestEnd({ judged }: MadeDelivery): { answered: boolean; durationMs: number } | undefined {
  if (!judged) return undefined
  const { kind, durationMs } = judged.posted.outcome
  return { answered: kind === 'response', durationMs }
}
