import type { Random } from '../../../infra/ids.ts'
import type { Db } from '../../../infra/postgres/pool.ts'
import type { Logger } from '../../../infra/telemetry.ts'
import { organizationStatuses } from '../../../projections/organizations/queries.ts'
import type { OrganizationStatus } from '../../../projections/organizations/tables.ts'
import { findEndpoints, findEvents } from '../../../projections/webhooks/queries.ts'
import {
  type EndpointRow,
  unreadableData,
  type WebhookEventRow,
} from '../../../projections/webhooks/tables.ts'
import {
  type AttemptDeps,
  type AttemptRequest,
  makeAttempt,
  type PostedAttempt,
} from '../deliveries/attempt.ts'
import {
  attemptedEvent,
  attemptLogFields,
  attemptResult,
  type FinishedAttempt,
  skippedEvent,
} from '../deliveries/decide.ts'
import type { TakenDelivery } from '../leases.ts'
import type { WebhookMeter } from '../metrics.ts'
import type { DeliveryOutcome } from './recorder.ts'

interface DeliverDeps extends AttemptDeps {
  waitsSeconds: readonly number[]
  random: Random
  meter: WebhookMeter
  logger: Logger
}

export interface FinishedDelivery extends DeliveryOutcome {
  /** undefined if the delivery was skipped. */
  attempt?: FinishedAttempt
  /** Logs and counts the attempt. Not called if the request was aborted. */
  report(): void
}

/** Makes one attempt of a leased delivery, or skips it. Returns undefined if `canSend` returned false. */
export async function deliver(
  deps: DeliverDeps,
  job: DeliveryJob,
  canSend: () => boolean,
): Promise<FinishedDelivery | undefined> {
  const { delivery, event, endpoint } = job
  const deliveryId = delivery.id
  const reason = skipReason(job)
  if (reason !== undefined) {
    const decision = skip(job, { reason, now: deps.clock() })
    return { deliveryId, decision, report: () => {} }
  }
  const posted = await tryAttempt(deps, { event, endpoint, canSend })
  if (posted.outcome.kind === 'failure' && posted.outcome.reason === 'dropped') {
    deps.logger.warn({ delivery_id: deliveryId }, 'webhook not sent: lease expired')
    return undefined
  }
  const result = attemptResult({
    outcome: posted.outcome,
    attemptsInRound: delivery.attemptsInRound + 1,
    now: deps.clock(),
    waitsSeconds: deps.waitsSeconds,
    random: deps.random(4).readUInt32BE() / 2 ** 32,
  })
  const number = delivery.attempts + 1
  const attempt = { event, endpoint, ...posted, deliveryId, number, ...result }
  const decision = attemptedEvent(attempt)
  return { deliveryId, decision, attempt, report: () => report(deps, attempt) }
}

function skipReason({ event, endpoint, organizationStatus }: DeliveryJob): string | undefined {
  if (event.data === unreadableData)
    return 'The data key of the session was deleted, so the payload cannot be read.'
  if (endpoint.status !== 'active') return 'The endpoint is disabled.'
  return organizationStatus === 'active' ? undefined : 'The organization is not active.'
}

async function tryAttempt(deps: DeliverDeps, request: AttemptRequest): Promise<PostedAttempt> {
  const attemptedAt = deps.clock()
  return makeAttempt(deps, request).catch((err) => {
    // This server lacks the master key. Counts as a failed attempt, so retries continue until an operator adds the key.
    deps.logger.error({ err, endpoint_id: request.endpoint.id }, 'failed to sign webhook')
    const message = 'The server could not decrypt the signing secret of the endpoint.'
    return { attemptedAt, outcome: { kind: 'failure', reason: 'protocol', message, durationMs: 0 } }
  })
}

function report({ meter, logger, clock }: DeliverDeps, attempt: FinishedAttempt): void {
  const { event, outcome, result, nextAttemptAt } = attempt
  meter.onAttempt({ outcome: result, durationMs: outcome.durationMs })
  if (result === 'succeeded') {
    meter.onDelivered(clock() - event.created_at)
    logger.debug(attemptLogFields(attempt), 'webhook delivered')
  } else
    logger.info(
      { ...attemptLogFields(attempt), next_attempt_at: nextAttemptAt },
      'webhook delivery failed',
    )
}

function skip({ delivery, event }: DeliveryJob, { reason, now }: { reason: string; now: number }) {
  const { id, eventId: event_id, endpointId: endpoint_id, dueAt } = delivery
  const { organization_id, environment } = event
  const about = { id, event_id, endpoint_id, organization_id, environment }
  return skippedEvent(about, { reason, occasion: String(dueAt), now })
}

/** Leased delivery with the rows that are needed to send it. */
export interface DeliveryJob {
  delivery: TakenDelivery
  event: WebhookEventRow
  endpoint: EndpointRow
  organizationStatus: OrganizationStatus
}

/** Leaves out deliveries whose event, endpoint or organization is not in the read models yet. */
export async function loadJobs(
  db: Db,
  deliveries: readonly TakenDelivery[],
): Promise<DeliveryJob[]> {
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
    return event && endpoint && organizationStatus
      ? [{ delivery, event, endpoint, organizationStatus }]
      : []
  })
}

const distinct = (ids: string[]): string[] => [...new Set(ids)]
