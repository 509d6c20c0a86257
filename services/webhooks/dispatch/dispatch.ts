import assert from 'node:assert/strict'
import type pg from 'pg'
import type { CatchUpGate } from '../../../infra/event-store/catch-up.ts'
import type { Clock } from '../../../infra/ids.ts'
import type { Logger } from '../../../infra/telemetry.ts'
import type { EndpointHealth } from '../endpoints/endpoint-health.ts'
import {
  findDueEndpoints,
  renewLeases,
  requeueDeliveries,
  type TakenDelivery,
  takeDeliveries,
} from '../leases.ts'
import type { WebhookMeter } from '../metrics.ts'
import { type ConcurrencyLimits, maxRequests, type RequestEnd } from './concurrency.ts'
import { type DeliveryJob, type FinishedDelivery, loadJobs } from './deliver.ts'
import { type DeliveryMode, nextStepFor } from './delivery-mode.ts'
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
  /** Called when a request slot becomes free while deliveries wait for one. */
  onFree: () => void
  /** Clock for leases, in milliseconds. */
  monotonic?: () => number
}

export interface Dispatch {
  /**
   * Takes due deliveries and starts their requests. Rejects until the read models have caught up, because during a
   * rebuild, deliveries that succeeded long ago look due.
   */
  takeDue(): Promise<void>
  /** Ids of the deliveries that this process is sending or recording. */
  inFlight(): string[]
  renewLeases(): Promise<void>
  /** Stops tracking the deliveries being sent, so that their results are ignored. Returns their ids. */
  abandonRequests(): string[]
}

interface InFlight {
  mode: DeliveryMode
  /** Never later than the expiry in the database, because the clock is read before the lease is taken or renewed. */
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
  const reportSending = () => meter.onSending(idsIn('sending').length)

  async function deliverAndRecord(job: DeliveryJob, lease: InFlight): Promise<void> {
    const { id, endpointId } = job.delivery
    // If this process was suspended, another one may have taken over the delivery.
    const canSend = () => monotonic() < lease.leasedUntil
    const delivery = await options.deliver(job, canSend).catch((err) => logUnexpected(err, job))
    limits.onEnd(endpointId, delivery && requestEnd(delivery))
    // `abandonRequests` may have removed the delivery meanwhile.
    const isRecorded = delivery !== undefined && inFlight.has(id)
    if (isRecorded) lease.mode = 'recording'
    else inFlight.delete(id)
    reportSending()
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

  /** The outcome is unknown, so the delivery is retried when its lease expires. */
  function logUnexpected(err: unknown, { delivery: { id: delivery_id } }: DeliveryJob): undefined {
    if (!signal.aborted) logger.error({ err, delivery_id }, 'webhook delivery failed unexpectedly')
  }

  function send(jobs: readonly DeliveryJob[], leasedUntil: number): void {
    const leased = jobs.map((job): [DeliveryJob, InFlight] => [
      job,
      { mode: 'sending', leasedUntil },
    ])
    for (const [job, lease] of leased) {
      const { id, endpointId } = job.delivery
      assert(!inFlight.has(id), 'a delivery has one request at a time')
      inFlight.set(id, lease)
      limits.onBegin(endpointId)
    }
    reportSending()
    for (const [job, lease] of leased)
      void deliverAndRecord(job, lease).catch((err) => logUnexpected(err, job))
  }

  function warnLag({ id, eventId, endpointId, organizationId }: TakenDelivery): void {
    logger.warn(
      {
        organization_id: organizationId,
        event_id: eventId,
        delivery_id: id,
        endpoint_id: endpointId,
      },
      'webhook delivery deferred: its event, endpoint or organization is not in the read models yet',
    )
  }

  async function start(taken: readonly TakenDelivery[], takenAt: number): Promise<void> {
    // Copied before the query, because a delivery that ends during the query is still to be ignored.
    const modes = new Map(inFlight)
    const jobs = await loadJobs(
      pool,
      taken.filter(({ id }) => !modes.has(id)),
    )
    const jobOf = new Map(jobs.map((job) => [job.delivery.id, job]))
    // With less than half of the lease left, it could expire during the request.
    const isTooLate = signal.aborted || monotonic() - takenAt >= leaseMs / 2
    const steps = Map.groupBy(taken, ({ id }) =>
      nextStepFor({ mode: modes.get(id)?.mode, isTooLate, isReadable: jobOf.has(id) }),
    )
    const lateIds = (steps.get('requeue') ?? []).map(({ id }) => id)
    if (lateIds.length > 0) await requeueDeliveries(pool, { owner, deliveryIds: lateIds })
    for (const delivery of steps.get('defer') ?? []) warnLag(delivery)
    send(
      (steps.get('send') ?? []).flatMap(({ id }) => jobOf.get(id) ?? []),
      takenAt + leaseMs,
    )
  }

  return {
    async takeDue() {
      const freeSlots = maxRequests - inFlight.size
      if (freeSlots <= 0) return
      await catchUpGate.waitUntilCaughtUp()
      const now = clock()
      const allocation = limits.allocate(await findDueEndpoints(pool, { now }), freeSlots)
      const { quotas } = allocation
      hasMore = allocation.hasMore
      const takenAt = monotonic()
      if (quotas.length === 0) return
      const request = { owner, leaseMs, quotas, max: freeSlots, now }
      await start(await takeDeliveries(pool, request), takenAt)
    },
    inFlight: () => [...inFlight.keys()],
    async renewLeases() {
      const leases = [...inFlight]
      if (leases.length === 0) return
      const renewedAt = monotonic()
      const deliveryIds = leases.map(([id]) => id)
      const renewed = await renewLeases(pool, { owner, deliveryIds, leaseMs })
      for (const [id, lease] of leases) if (renewed.has(id)) lease.leasedUntil = renewedAt + leaseMs
      // Excludes deliveries that ended meanwhile, which no longer have a lease.
      const lostLeases = leases.filter(
        ([id, lease]) => !renewed.has(id) && inFlight.get(id) === lease && lease.mode === 'sending',
      )
      if (lostLeases.length > 0)
        logger.warn(
          { leases: lostLeases.length },
          'webhook leases expired; deliveries may be sent twice',
        )
    },
    abandonRequests() {
      const ids = idsIn('sending')
      for (const id of ids) inFlight.delete(id)
      return ids
    },
  }
}

function requestEnd({ attempt }: FinishedDelivery): RequestEnd | undefined {
  if (!attempt) return undefined
  const { kind, durationMs } = attempt.outcome
  return { gotResponse: kind === 'response', durationMs }
}
