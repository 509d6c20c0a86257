import assert from 'node:assert/strict'
import type pg from 'pg'
import type { CatchUpGate } from '../../../infra/event-store/catch-up.ts'
import type { Clock } from '../../../infra/ids.ts'
import type { Logger } from '../../../infra/telemetry.ts'
import type { EndpointHealth } from '../endpoints/give-up.ts'
import {
  findDueEndpoints,
  renewLeases,
  requeueDeliveries,
  type TakenDelivery,
  takeDeliveries,
} from '../leases.ts'
import type { WebhookMeter } from '../metrics.ts'
import { type ConcurrencyLimits, maxRequests, type RequestEnd } from './concurrency.ts'
import { type FinishedDelivery, type Job, loadJobs } from './deliver.ts'
import { type DeliveryMode, stepOf } from './delivery-mode.ts'
import type { Recorder } from './recorder.ts'
import type { Deliver } from './traced-delivery.ts'

export interface DispatchOptions {
  pool: pg.Pool
  owner: string
  leaseMs: number
  limits: ConcurrencyLimits
  catchUpGate: Pick<CatchUpGate, 'waitUntilCaughtUp'>
  deliver: Deliver
  recorder: Recorder
  endpointHealth: Pick<EndpointHealth, 'evaluate'>
  clock: Clock
  logger: Logger
  meter: Pick<WebhookMeter, 'onSending'>
  signal: AbortSignal
  /** Called when a request slot is free again while deliveries wait for one. */
  onFree: () => void
  /** Clock for leases, milliseconds. */
  monotonic?: () => number
}

export interface Dispatch {
  /**
   * Takes due deliveries and starts their requests. Rejects until the read models have caught up: while they are
   * rebuilt from the log, deliveries that succeeded long ago look due.
   */
  takeDue(): Promise<void>
  /** Ids of the deliveries that this process is sending or recording. */
  inFlight(): string[]
  renewLeases(): Promise<void>
  /** Removes the deliveries being sent from those in flight, so their results are ignored. Returns their ids. */
  dropRequests(): string[]
}

interface InFlight {
  mode: DeliveryMode
  /** Earlier than the expiry in the database, because this clock is read before the lease is taken or renewed. */
  leasedUntil: number
}

export function createDispatch(options: DispatchOptions): Dispatch {
  const { pool, owner, leaseMs, limits, catchUpGate, recorder, clock, logger, meter, signal } =
    options
  const { monotonic = () => performance.now() } = options
  const inFlight = new Map<string, InFlight>()
  let hasMore = false

  const idsIn = (mode: DeliveryMode): string[] =>
    [...inFlight].flatMap(([id, lease]) => (lease.mode === mode ? [id] : []))
  const meterSending = () => meter.onSending(idsIn('sending').length)

  async function deliverAndRecord(job: Job, lease: InFlight): Promise<void> {
    const { id, endpointId } = job.delivery
    // A process that was suspended may get its connection after another process has taken the delivery over.
    const canSend = () => monotonic() < lease.leasedUntil
    const delivery = await options.deliver(job, canSend).catch((err) => logUnexpected(err, job))
    limits.onEnd(endpointId, delivery && requestEnd(delivery))
    // `dropRequests` may have requeued it meanwhile.
    const isRecorded = delivery !== undefined && inFlight.has(id)
    if (isRecorded) lease.mode = 'recording'
    else inFlight.delete(id)
    meterSending()
    if (isRecorded) await record(id, delivery)
  }

  async function record(id: string, delivery: FinishedDelivery): Promise<void> {
    assert(inFlight.get(id)?.mode === 'recording', 'only a delivery that was sent is recorded')
    delivery.report()
    await recorder.record(delivery)
    inFlight.delete(id)
    if (delivery.attempt) void options.endpointHealth.evaluate(delivery.attempt)
    if (hasMore) options.onFree()
  }

  /** Only logs: the outcome is unknown, so the delivery is retried when its lease expires. */
  function logUnexpected(err: unknown, { delivery: { id: deliveryId } }: Job): undefined {
    if (!signal.aborted) logger.error({ err, deliveryId }, 'webhook delivery failed unexpectedly')
  }

  function send(jobs: readonly Job[], leasedUntil: number): void {
    const leased = jobs.map((job): [Job, InFlight] => [job, { mode: 'sending', leasedUntil }])
    for (const [job, lease] of leased) {
      const { id, endpointId } = job.delivery
      assert(!inFlight.has(id), 'a delivery has one request at a time')
      inFlight.set(id, lease)
      limits.onBegin(endpointId)
    }
    meterSending()
    for (const [job, lease] of leased)
      void deliverAndRecord(job, lease).catch((err) => logUnexpected(err, job))
  }

  function logHidden({ id: deliveryId, eventId, endpointId, organizationId }: TakenDelivery): void {
    logger.warn(
      { organizationId, eventId, deliveryId, endpointId },
      'webhook delivery deferred: its event, endpoint or organization is not in the read models yet',
    )
  }

  async function start(taken: readonly TakenDelivery[], takenAt: number): Promise<void> {
    // Copied before the query: a request that ends during it does not make its delivery due again.
    const modes = new Map(inFlight)
    const jobs = await loadJobs(
      pool,
      taken.filter(({ id }) => !modes.has(id)),
    )
    const jobOf = new Map(jobs.map((job) => [job.delivery.id, job]))
    // The rest of the lease might be too short for a request; another process could then send the delivery too.
    const isTooLate = signal.aborted || monotonic() - takenAt >= leaseMs / 2
    const steps = Map.groupBy(taken, ({ id }) =>
      stepOf({ mode: modes.get(id)?.mode, isTooLate, isReadable: jobOf.has(id) }),
    )
    const late = (steps.get('requeue') ?? []).map(({ id }) => id)
    if (late.length > 0) await requeueDeliveries(pool, { owner, deliveryIds: late })
    for (const delivery of steps.get('hide') ?? []) logHidden(delivery)
    send(
      (steps.get('send') ?? []).flatMap(({ id }) => jobOf.get(id) ?? []),
      takenAt + leaseMs,
    )
  }

  return {
    async takeDue() {
      const free = maxRequests - inFlight.size
      if (free <= 0) return
      await catchUpGate.waitUntilCaughtUp()
      const now = clock()
      const allocation = limits.allocate(await findDueEndpoints(pool, { now }), free)
      const { quotas } = allocation
      hasMore = allocation.hasMore
      const takenAt = monotonic()
      if (quotas.length > 0)
        await start(await takeDeliveries(pool, { owner, leaseMs, quotas, free, now }), takenAt)
    },
    inFlight: () => [...inFlight.keys()],
    async renewLeases() {
      const leases = [...inFlight]
      if (leases.length === 0) return
      const renewedAt = monotonic()
      const deliveryIds = leases.map(([id]) => id)
      const renewed = await renewLeases(pool, { owner, deliveryIds, leaseMs })
      for (const [id, lease] of leases) if (renewed.has(id)) lease.leasedUntil = renewedAt + leaseMs
      // A delivery that ended meanwhile has no lease to renew, so it does not count as lost.
      const lostLeases = leases.filter(
        ([id, lease]) => !renewed.has(id) && inFlight.get(id) === lease && lease.mode === 'sending',
      )
      if (lostLeases.length > 0)
        logger.warn(
          { leases: lostLeases.length },
          'webhook leases expired; deliveries may be sent twice',
        )
    },
    dropRequests() {
      const ids = idsIn('sending')
      for (const id of ids) inFlight.delete(id)
      return ids
    },
  }
}

function requestEnd({ attempt }: FinishedDelivery): RequestEnd | undefined {
  if (!attempt) return undefined
  const { kind, durationMs } = attempt.outcome
  return { answered: kind === 'response', durationMs }
}
