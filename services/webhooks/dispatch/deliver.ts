import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import type { Applied } from '../../../infra/event-store/applied.ts'
import type { EventCodec } from '../../../infra/event-store/codec.ts'
import type { DecidedEvent } from '../../../infra/event-store/decide.ts'
import type { Random } from '../../../infra/ids.ts'
import type { EventLog, Position } from '../../../infra/log/port.ts'
import type { Db } from '../../../infra/postgres/pool.ts'
import type { Logger } from '../../../infra/telemetry.ts'
import { organizationStatuses } from '../../../projections/organizations/queries.ts'
import type { OrganizationStatus } from '../../../projections/organizations/tables.ts'
import { findEndpoints, findEvents } from '../../../projections/webhooks/queries.ts'
import type { EndpointRow, WebhookEventRow } from '../../../projections/webhooks/tables.ts'
import { type AttemptDeps, type AttemptOf, makeAttempt, type PostedAttempt } from '../deliveries/attempt.ts'
import { type AttemptResult, attemptedEvent, attemptResult, skippedEvent } from '../deliveries/decide.ts'
import type { GiveUp } from '../endpoints/give-up.ts'
import type { WebhookMeter } from '../metrics.ts'
import type { RequestEnd } from './concurrency.ts'
import type { ReceivedDelivery } from './queue.ts'
import { releaseApplied } from './visibility.ts'

interface DeliverDeps extends AttemptDeps {
  waitsSeconds: readonly number[]
  random: Random
  recorder: Pick<Recorder, 'record'>
  meter: WebhookMeter
  giveUp: Pick<GiveUp, 'look'>
  logger: Logger
}

/**
 * Called when a job's request has ended, or when there is none. False when the delivery is in flight here no longer:
 * its attempt is then not recorded.
 */
export type OnEnd = (end?: RequestEnd) => boolean

/** Makes one attempt of a received delivery and records it; resolves when the delivery has left the queue's tables. */
export function createDeliver(deps: DeliverDeps): (job: Job, onEnd: OnEnd) => Promise<void> {
  const { recorder, clock } = deps
  return async (job, onEnd) => {
    const { delivery, endpoint } = job
    const reason = skipReason(job)
    if (reason !== undefined) {
      if (onEnd()) await recorder.record(delivery.id, skip(job, { reason, now: clock() }))
      return
    }
    const posted = await postedAttempt(deps, { event: job.event, endpoint })
    const { outcome } = posted
    if (!onEnd({ answered: outcome.kind === 'response', durationMs: outcome.durationMs })) return
    const result = resultFor(deps, job, posted)
    report(deps, job, { endpoint, posted, ...result })
    const made = { deliveryId: delivery.id, attempt: delivery.attempts + 1 }
    await recorder.record(
      delivery.id,
      attemptedEvent({ event: job.event, endpoint, ...posted, ...made, ...result }),
    )
    void deps.giveUp.look({ endpoint, posted, succeeded: result.result === 'succeeded' })
  }
}

function skipReason({ endpoint, organizationStatus }: Job): string | undefined {
  if (endpoint.status !== 'active') return 'The endpoint is disabled.'
  return organizationStatus === 'active' ? undefined : 'The organization is not active.'
}

async function postedAttempt(deps: DeliverDeps, about: AttemptOf): Promise<PostedAttempt> {
  const attemptedAt = deps.clock()
  return makeAttempt(deps, about).catch((err) => {
    // Somebody has to give the server its master key back; until then the schedule goes on.
    deps.logger.error({ err, endpointId: about.endpoint.id }, 'a webhook could not be signed')
    const message = 'The server could not open the signing secret of the endpoint.'
    return { attemptedAt, outcome: { kind: 'failure', reason: 'protocol', message, durationMs: 0 } }
  })
}

function resultFor(
  { waitsSeconds, random, clock }: DeliverDeps,
  { delivery }: Job,
  { outcome }: PostedAttempt,
): AttemptResult {
  return attemptResult({
    outcome,
    attemptsInRound: delivery.attemptsInRound + 1,
    now: clock(),
    waitsSeconds,
    random: random(4).readUInt32BE() / 2 ** 32,
  })
}

interface Reported extends AttemptResult {
  endpoint: EndpointRow
  posted: PostedAttempt
}

function report(
  { meter, logger, clock }: Pick<DeliverDeps, 'meter' | 'logger' | 'clock'>,
  { delivery, event }: Job,
  { endpoint, posted: { outcome }, result, nextAttemptAt }: Reported,
): void {
  const { durationMs } = outcome
  meter.onAttempt({ outcome: result, durationMs })
  if (result === 'succeeded') meter.onDelivered(clock() - event.created_at)
  const line = {
    organizationId: event.organization_id,
    eventId: event.id,
    deliveryId: delivery.id,
    endpointId: endpoint.id,
    attempt: delivery.attempts + 1,
    outcome: result,
    durationMs,
    ...(outcome.kind === 'response' ? { status: outcome.status } : { reason: outcome.reason }),
  }
  if (result === 'succeeded') logger.debug(line, 'webhook delivered')
  else logger.info({ ...line, nextAttemptAt }, 'webhook not delivered')
}

function skip({ delivery, event }: Job, { reason, now }: { reason: string; now: number }): DecidedEvent {
  const { id, eventId: event_id, endpointId: endpoint_id, dueAt } = delivery
  const { organization_id, environment } = event
  const about = { id, event_id, endpoint_id, organization_id, environment }
  return skippedEvent({ delivery: about, reason, occasion: String(dueAt), now })
}

export interface Job {
  delivery: ReceivedDelivery
  event: WebhookEventRow
  endpoint: EndpointRow
  organizationStatus: OrganizationStatus
}

/** Leaves those out whose event, endpoint or organization the read models do not show: they may not show it yet. */
export async function loadJobs(db: Db, deliveries: ReceivedDelivery[]): Promise<Job[]> {
  if (deliveries.length === 0) return []
  const [events, endpoints, statuses] = await Promise.all([
    findEvents(db, distinct(deliveries.map(({ eventId }) => eventId))),
    findEndpoints(db, distinct(deliveries.map(({ endpointId }) => endpointId))),
    organizationStatuses(db, distinct(deliveries.map(({ organizationId }) => organizationId))),
  ])
  return deliveries.flatMap((delivery) => {
    const event = events.get(delivery.eventId)
    const endpoint = endpoints.get(delivery.endpointId)
    const organizationStatus = statuses.get(delivery.organizationId)
    return event && endpoint && organizationStatus ? [{ delivery, event, endpoint, organizationStatus }] : []
  })
}

const distinct = (ids: string[]): string[] => [...new Set(ids)]

export interface RecorderOptions {
  owner: string
  pool: pg.Pool
  log: Pick<EventLog, 'append'>
  codec: EventCodec
  applied: Pick<Applied, 'onAdvance'>
  logger: Logger
}

export interface Recorder {
  /** Resolves when the record is on the log and applied, and the delivery no longer in flight; never, once closed. */
  record(deliveryId: string, decision: DecidedEvent): Promise<void>
  /** What is not recorded or applied yet stays hidden until its visibility timeout expires. */
  close(): void
}

// Releases of about one round of the projection travel together.
const releaseLingerMs = 10
// A notification may be lost.
const lookMs = 500
const appendRetryMs = { first: 100, most: 2000 }

interface Waiting {
  position: Position
  released: () => void
}

/**
 * Appends what became of deliveries, and ends their visibility timeouts once the read model shows it: before that, they
 * would look due to the next dispatcher. While the log is away, records wait here and the timeouts are renewed.
 */
export function createRecorder(options: RecorderOptions): Recorder {
  const { owner, pool, log, codec, applied, logger } = options
  const waiting = new Map<string, Waiting>()
  const nextOf = new Map<number, number>()
  const closed = new AbortController()
  const warn = createWarning(logger)
  let releasing: NodeJS.Timeout | undefined
  let isReleasing = false
  let isWantedAgain = false

  async function append(decision: DecidedEvent): Promise<Position | undefined> {
    const record = codec.toRecord(decision.event, decision.meta)
    for (
      let wait = appendRetryMs.first;
      !closed.signal.aborted;
      wait = Math.min(2 * wait, appendRetryMs.most)
    ) {
      try {
        const [position] = await log.append([record])
        return position
      } catch (err) {
        // Appended twice it is the same record: the read model takes the first of an attempt's number.
        warn(err, decision)
        await delay(wait, undefined, { signal: closed.signal }).catch(() => {})
      }
    }
    return undefined
  }

  function releaseSoon(): void {
    if (closed.signal.aborted) return
    // The round under way has read how far the read model was.
    if (isReleasing) isWantedAgain = true
    else releasing ??= setTimeout(() => void releaseRound(), releaseLingerMs)
  }

  async function releaseRound(): Promise<void> {
    releasing = undefined
    isReleasing = true
    isWantedAgain = false
    await release((position) => position.offset < (nextOf.get(position.partition) ?? 0))
    isReleasing = false
    if (isWantedAgain) releaseSoon()
  }

  async function release(isCandidate: (position: Position) => boolean): Promise<void> {
    const recorded = [...waiting].flatMap(([deliveryId, { position }]) =>
      isCandidate(position) ? [{ deliveryId, position }] : [],
    )
    if (recorded.length === 0) return
    try {
      for (const id of await releaseApplied(pool, { owner, recorded })) {
        waiting.get(id)?.released()
        waiting.delete(id)
      }
    } catch (err) {
      logger.debug({ err }, 'webhook leases were not given back, trying again')
    }
  }

  const stopListening = applied.onAdvance('webhooks', ({ partition, offset }) => {
    nextOf.set(partition, offset)
    if (waiting.size > 0) releaseSoon()
  })
  const look = setInterval(() => void release(() => true), lookMs)

  return {
    async record(deliveryId, decision) {
      const position = await append(decision)
      const { promise, resolve: released } = Promise.withResolvers<void>()
      if (!position) return promise
      waiting.set(deliveryId, { position, released })
      if (position.offset < (nextOf.get(position.partition) ?? 0)) releaseSoon()
      return promise
    },
    close() {
      closed.abort()
      clearInterval(look)
      clearTimeout(releasing)
      stopListening()
    },
  }
}

const warnEveryMs = 1000

// Hundreds of records may wait for a log that is away, each of which tries again: one line a second says it.
function createWarning(logger: Logger): (err: unknown, decision: DecidedEvent) => void {
  let quietUntil = -Infinity
  let failures = 0
  return (err, { meta: { eventId } }) => {
    failures++
    if (performance.now() < quietUntil) return
    logger.warn({ err, eventId, failures }, 'webhook attempts were not recorded, trying again')
    quietUntil = performance.now() + warnEveryMs
    failures = 0
  }
}
