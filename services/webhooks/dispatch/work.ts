import assert from 'node:assert/strict'
import type pg from 'pg'
import type { CaughtUp } from '../../../infra/event-store/catch-up.ts'
import type { Clock } from '../../../infra/ids.ts'
import type { Logger } from '../../../infra/telemetry.ts'
import type { GiveUp } from '../endpoints/give-up.ts'
import { dueEndpoints, putBack, renew, type TakenDelivery, take } from '../leases.ts'
import type { WebhookMeter } from '../metrics.ts'
import { type ConcurrencyLimits, maxRequests, type RequestEnd } from './concurrency.ts'
import { type Job, loadJobs, type MadeDelivery } from './deliver.ts'
import { type DeliveryMode, stepOf } from './delivery-mode.ts'
import type { Recorder } from './recorder.ts'
import type { Deliver } from './traced-delivery.ts'

export interface WorkOptions {
  pool: pg.Pool
  owner: string
  leaseMs: number
  limits: ConcurrencyLimits
  caughtUp: Pick<CaughtUp, 'waitUntilCaughtUp'>
  deliver: Deliver
  recorder: Recorder
  giveUp: Pick<GiveUp, 'judge'>
  clock: Clock
  logger: Logger
  meter: Pick<WebhookMeter, 'onSending'>
  signal: AbortSignal
  /** More may be taken than the last time. */
  onFree: () => void
  monotonic?: () => number
}

export interface Dispatch {
  /**
   * Takes what is due and starts it. Rejects while the read models have not caught up: in a database that is filled from
   * the log again, every delivery ever made looks due.
   */
  takeDue(): Promise<void>
  /** The deliveries in flight here: their requests run, or their records are on the way. */
  inFlight(): string[]
  renewLeases(): Promise<void>
  /** Those whose requests run, from now on in flight no longer. */
  dropRequests(): string[]
}

interface InFlight {
  mode: DeliveryMode
  /** By the clock of this process; it was read before the lease was taken or renewed, so the lease lasts longer. */
  leasedUntil: number
}

export function createWork(options: WorkOptions): Dispatch {
  const { pool, owner, leaseMs, limits, caughtUp, recorder, clock, logger, meter, signal } = options
  const { monotonic = () => performance.now() } = options
  const inFlight = new Map<string, InFlight>()
  let hasMore = false

  const idsIn = (mode: DeliveryMode): string[] =>
    [...inFlight].flatMap(([id, current]) => (current.mode === mode ? [id] : []))
  const meterSending = () => meter.onSending(idsIn('sending').length)

  async function make(job: Job, lease: InFlight): Promise<void> {
    const { id, endpointId } = job.delivery
    // A process that stood still may find a connection open after another one has taken the delivery over.
    const mayBegin = () => monotonic() < lease.leasedUntil
    const ended = await options.deliver(job, mayBegin).catch((err) => unexpected(err, job))
    limits.ended(endpointId, ended && requestEnd(ended))
    // One that was dropped meanwhile is not ours any more.
    const isRecorded = ended !== undefined && inFlight.has(id)
    if (isRecorded) lease.mode = 'recording'
    else inFlight.delete(id)
    meterSending()
    if (isRecorded) await record(id, ended)
  }

  async function record(id: string, ended: MadeDelivery): Promise<void> {
    assert(inFlight.get(id)?.mode === 'recording', 'only what was sent is recorded')
    ended.report()
    await recorder.record(ended)
    inFlight.delete(id)
    if (ended.made) void options.giveUp.judge(ended.made)
    if (hasMore) options.onFree()
  }

  /** Nothing is known of it, so it is made again when its lease expires. */
  function unexpected(err: unknown, { delivery: { id: deliveryId } }: Job): undefined {
    if (!signal.aborted)
      logger.error({ err, deliveryId }, 'a webhook delivery ended in an unexpected error')
  }

  function send(jobs: readonly Job[], leasedUntil: number): void {
    const begun = jobs.map((job): [Job, InFlight] => [job, { mode: 'sending', leasedUntil }])
    for (const [job, lease] of begun) {
      const { id, endpointId } = job.delivery
      assert(!inFlight.has(id), 'a delivery has one request at a time')
      inFlight.set(id, lease)
      limits.began(endpointId)
    }
    meterSending()
    for (const [job, lease] of begun) void make(job, lease).catch((err) => unexpected(err, job))
  }

  function logHidden({ id: deliveryId, eventId, endpointId, organizationId }: TakenDelivery): void {
    const line = { organizationId, eventId, deliveryId, endpointId }
    logger.warn(
      line,
      'a webhook waits: its event, endpoint or organization is not in the read models yet',
    )
  }

  async function start(taken: readonly TakenDelivery[], takenAt: number): Promise<void> {
    // As it was before the look-up: a request that ends meanwhile makes none of them due again.
    const modes = new Map(inFlight)
    const jobs = await loadJobs(
      pool,
      taken.filter(({ id }) => !modes.has(id)),
    )
    const jobOf = new Map(jobs.map((job) => [job.delivery.id, job]))
    // After half the lease, another process may make the delivery before the request has ended.
    const isTooLate = signal.aborted || monotonic() - takenAt >= leaseMs / 2
    const steps = Map.groupBy(taken, ({ id }) =>
      stepOf({ mode: modes.get(id)?.mode, isTooLate, isReadable: jobOf.has(id) }),
    )
    const late = steps.get('putBack') ?? []
    if (late.length > 0) await putBack(pool, { owner, deliveryIds: late.map(({ id }) => id) })
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
      await caughtUp.waitUntilCaughtUp()
      const now = clock()
      const allocation = limits.allocate(await dueEndpoints(pool, { now }), free)
      const { quotas } = allocation
      hasMore = allocation.hasMore
      const takenAt = monotonic()
      if (quotas.length > 0)
        await start(await take(pool, { owner, leaseMs, quotas, free, now }), takenAt)
    },
    inFlight: () => [...inFlight.keys()],
    async renewLeases() {
      const held = [...inFlight]
      if (held.length === 0) return
      const renewedAt = monotonic()
      const deliveryIds = held.map(([id]) => id)
      const renewed = await renew(pool, { owner, deliveryIds, leaseMs })
      for (const [id, lease] of held) if (renewed.has(id)) lease.leasedUntil = renewedAt + leaseMs
      // The lease of one that has ended meanwhile is not renewed either.
      const lost = held.filter(
        ([id, lease]) => !renewed.has(id) && inFlight.get(id) === lease && lease.mode === 'sending',
      )
      if (lost.length > 0)
        logger.warn({ leases: lost.length }, 'webhook leases expired, deliveries may be made twice')
    },
    dropRequests() {
      const ids = idsIn('sending')
      for (const id of ids) inFlight.delete(id)
      return ids
    },
  }
}

function requestEnd({ made }: MadeDelivery): RequestEnd | undefined {
  if (!made) return undefined
  const { kind, durationMs } = made.outcome
  return { answered: kind === 'response', durationMs }
}
