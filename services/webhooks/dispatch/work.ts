import type pg from 'pg'
import type { CaughtUp } from '../../../infra/event-store/catch-up.ts'
import type { Clock } from '../../../infra/ids.ts'
import type { Logger } from '../../../infra/telemetry.ts'
import type { GiveUp } from '../endpoints/give-up.ts'
import type { WebhookMeter } from '../metrics.ts'
import { type ConcurrencyLimits, maxRequests, type RequestEnd } from './concurrency.ts'
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
  recorder: Recorder
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
   * Takes what is due and starts it. Rejects while the read models have not caught up: in a database that is filled from
   * the log again, every delivery ever made looks due.
   */
  look(): Promise<void>
  /** The deliveries in flight here: their requests run, or their records are on the way. */
  inFlight(): string[]
  /** Those whose requests run, from now on in flight no longer. */
  dropRequests(): string[]
}

export function createWork(options: WorkOptions): Dispatch {
  const { pool, owner, leaseMs, limits, caughtUp, recorder, clock, logger, meter, signal } = options
  const { monotonic = () => performance.now() } = options
  const sending = new Set<string>()
  const recording = new Set<string>()
  let hasMore = false

  async function make(job: Job): Promise<void> {
    const { id, endpointId } = job.delivery
    const made = await options.deliver(job).catch((err) => unexpected(err, job))
    limits.ended(endpointId, made && requestEnd(made))
    const isOurs = sending.delete(id)
    meter.onSending(sending.size)
    if (!made || !isOurs) return
    made.report()
    recording.add(id)
    await recorder.record(made)
    recording.delete(id)
    if (made.judged) void options.giveUp.look(made.judged)
    if (hasMore) options.onFree()
  }

  /** Nothing is known of it, so it is made again when its lease expires. */
  function unexpected(err: unknown, { delivery: { id: deliveryId } }: Job): undefined {
    if (!signal.aborted) logger.error({ err, deliveryId }, 'a webhook delivery ended in an unexpected error')
  }

  function begin(jobs: readonly Job[]): void {
    for (const { delivery } of jobs) {
      sending.add(delivery.id)
      limits.began(delivery.endpointId)
    }
    meter.onSending(sending.size)
    for (const job of jobs) void make(job).catch((err) => unexpected(err, job))
  }

  /** It stays hidden and is not renewed, so that it is looked at again when its timeout has expired, and not before. */
  function leave({ id: deliveryId, eventId, endpointId, organizationId }: TakenDelivery): void {
    const line = { organizationId, eventId, deliveryId, endpointId }
    logger.warn(line, 'a webhook waits: the read model does not show its event, endpoint or organization')
  }

  /**
   * Nothing is sent when half the lease has passed, as in a process that was suspended: another process may
   * have made the delivery since.
   */
  async function start(taken: readonly TakenDelivery[], takenAt: number): Promise<void> {
    // A database that lost its last commits gives once more what is in flight here.
    const fresh = taken.filter(({ id }) => !sending.has(id) && !recording.has(id))
    const jobs = await loadJobs(pool, fresh)
    if (signal.aborted || monotonic() - takenAt >= leaseMs / 2)
      return await putBack(pool, { owner, deliveryIds: fresh.map(({ id }) => id) })
    const known = new Set(jobs.map(({ delivery }) => delivery.id))
    for (const delivery of fresh) if (!known.has(delivery.id)) leave(delivery)
    begin(jobs)
  }

  return {
    async look() {
      const free = maxRequests - sending.size - recording.size
      if (free <= 0) return
      await caughtUp.waitUntilCaughtUp()
      const now = clock()
      const allocation = limits.allocate(await dueEndpoints(pool, { now }), free)
      const { quotas } = allocation
      hasMore = allocation.hasMore
      const takenAt = monotonic()
      if (quotas.length > 0) await start(await take(pool, { owner, leaseMs, quotas, free, now }), takenAt)
    },
    inFlight: () => [...sending, ...recording],
    dropRequests() {
      const ids = [...sending]
      sending.clear()
      return ids
    },
  }
}

function requestEnd({ judged }: MadeDelivery): RequestEnd | undefined {
  if (!judged) return undefined
  const { kind, durationMs } = judged.posted.outcome
  return { answered: kind === 'response', durationMs }
}
