import type { EventCodec } from '../../infra/event-store/codec.ts'
import {
  type Decide,
  type DecideAs,
  type DecidedEvent,
  decidedEvent,
} from '../../infra/event-store/decide.ts'
import type { TrafficEvent } from '../../infra/event-store/event.ts'
import { type DecisionId, derivedHexId, webhookEventId } from '../../infra/ids.ts'
import type { EventLog } from '../../infra/log/port.ts'
import type { Db } from '../../infra/postgres/pool.ts'
import type { RequestOutcome } from '../../infra/safe-http/client.ts'
import type { Logger } from '../../infra/telemetry.ts'
import {
  type DirectAttempt,
  type DirectCalls,
  type DirectDelivery,
  type DirectEvent,
  type DirectRefusal,
  type DirectResult,
  directEventType,
} from '../../infra/wire/webhooks/direct-call.ts'
import { organizationStatuses } from '../../projections/organizations/queries.ts'
import {
  findDelivery,
  findEndpoints,
  findEvents,
  findRaisedEventIds,
} from '../../projections/webhooks/queries.ts'
import {
  type DeliveryRow,
  type EndpointRow,
  unreadableData,
  type WebhookEventRow,
} from '../../projections/webhooks/tables.ts'
import { eventTopics, type WebhookEventRaised } from '../../schemas/events.ts'
import { type AttemptDeps, makeAttempt } from './deliveries/attempt.ts'
import {
  attemptedEvent,
  attemptLogFields,
  type FinishedAttempt,
  skippedEvent,
} from './deliveries/decide.ts'
import { createEndpointHealth } from './endpoints/endpoint-health.ts'

interface DirectCallsOptions extends AttemptDeps {
  decideAs: DecideAs
  pool: Db
  log: Pick<EventLog, 'append'>
  codec: EventCodec
  logger: Logger
}

/** Creates calls that bypass the queue: the caller waits for each attempt and its response. */
export function createDirectCalls(options: DirectCallsOptions): DirectCalls {
  const { decideAs, pool, log, codec, clock, logger } = options
  const decide = decideAs({ type: 'service', id: 'gate' })
  const endpointHealth = createEndpointHealth({ decideAs, db: pool, clock, logger })

  async function append({ event, meta }: DecidedEvent<TrafficEvent>): Promise<void> {
    await codec.prepareKeys([event])
    await log.append([codec.toRecord(event, meta)])
  }

  async function attempt(
    { event, endpoint, delivery }: DirectJob,
    request: DirectAttempt,
  ): Promise<DirectResult> {
    const { attempt: number, timeoutMs } = request
    const posted = await makeAttempt(options, { event, endpoint, timeoutMs })
    const result = resultOf(posted.outcome, request)
    const finished: FinishedAttempt = {
      event,
      endpoint,
      deliveryId: delivery.id,
      number,
      ...posted,
      result: recordedResults[result.kind],
      nextAttemptAt: null,
      error: result.kind === 'accepted' ? undefined : result.problem,
    }
    if (finished.result === 'succeeded')
      logger.debug(attemptLogFields(finished), 'webhook delivered directly')
    else logger.info(attemptLogFields(finished), 'direct webhook delivery failed')
    // Before returning, so that the log has the attempt before any consequences of it.
    await append(attemptedEvent(finished))
    void endpointHealth.evaluate(finished)
    return result
  }

  return {
    raise: (event) => raiseDirect(decide, event),
    async attempt(request) {
      const job = await loadDirectJob(pool, request)
      return typeof job === 'string' ? { kind: 'not_sent', reason: job } : attempt(job, request)
    },
    async cancel(ids, reason) {
      const delivery = await findDirectDelivery(pool, ids)
      if (delivery)
        await append(skippedEvent(delivery, { reason, occasion: 'given up', now: clock() }))
    },
  }
}

const recordedResults = { accepted: 'succeeded', retry: 'retrying', failed: 'failed' } as const

type SentResult = Exclude<DirectResult, { kind: 'not_sent' }>

function resultOf(outcome: RequestOutcome, { judge, isLast }: DirectAttempt): SentResult {
  const failure = isLast ? 'failed' : 'retry'
  if (outcome.kind === 'failure') return { kind: failure, problem: outcome.message }
  const response = { status: outcome.status, body: outcome.body }
  const judgement = judge(response)
  if (judgement.kind === 'accepted') return { kind: 'accepted', response }
  return { kind: judgement.kind === 'refuse' ? 'failed' : failure, problem: judgement.problem }
}

interface DirectJob {
  event: WebhookEventRow
  endpoint: EndpointRow
  delivery: DeliveryRow
}

// Returns undefined if the event was not raised for this endpoint, or its delivery belongs to the queue.
async function findDirectDelivery(
  db: Db,
  { eventId, endpointId }: DirectDelivery,
): Promise<DeliveryRow | undefined> {
  const delivery = await findDelivery(db, derivedHexId('wdlv', eventId, endpointId))
  return delivery?.event_type === directEventType ? delivery : undefined
}

async function loadDirectJob(db: Db, ids: DirectDelivery): Promise<DirectJob | DirectRefusal> {
  const { eventId, endpointId } = ids
  const [delivery, events, endpoints] = await Promise.all([
    findDirectDelivery(db, ids),
    findEvents(db, [eventId]),
    findEndpoints(db, [endpointId]),
  ])
  const [event, endpoint] = [events.get(eventId), endpoints.get(endpointId)]
  if (!delivery || !event) return 'not_raised'
  if (delivery.status === 'failed' || delivery.status === 'skipped') return 'already_failed'
  if (event.data === unreadableData) return 'event_unreadable'
  if (!endpoint || !isSameTenant(endpoint, event)) return 'endpoint_unknown'
  const refusal = endpointRefusal(endpoint, event) ?? (await organizationRefusal(db, event))
  return refusal ?? { event, endpoint, delivery }
}

function isSameTenant(endpoint: EndpointRow, event: WebhookEventRow): boolean {
  return (
    endpoint.organization_id === event.organization_id && endpoint.environment === event.environment
  )
}

function endpointRefusal(endpoint: EndpointRow, event: WebhookEventRow): DirectRefusal | undefined {
  if (endpoint.status !== 'active') return 'endpoint_disabled'
  return endpoint.event_types.some((type) => type === event.type)
    ? undefined
    : 'endpoint_not_subscribed'
}

async function organizationRefusal(
  db: Db,
  event: WebhookEventRow,
): Promise<DirectRefusal | undefined> {
  const { organization_id: id } = event
  return (await organizationStatuses(db, [id])).get(id) === 'active'
    ? undefined
    : 'organization_inactive'
}

async function raiseDirect(decide: Decide, event: DirectEvent): Promise<DecisionId> {
  const eventId = webhookEventId(event.type, event.subject.id)
  await decide({
    locks: [`webhook-event:${eventId}`],
    topic: eventTopics.WebhookEventRaised,
    key: eventId,
    projection: 'webhooks',
    load: async (tx) => (await findRaisedEventIds(tx, [eventId])).has(eventId),
    decide: (isRaised) => (isRaised ? [] : [raisedEvent(eventId, event)]),
  })
  return eventId
}

function raisedEvent(eventId: DecisionId, event: DirectEvent): DecidedEvent {
  const { organizationId, environment, createdAt: now } = event
  const data: WebhookEventRaised = {
    event_id: eventId,
    organization_id: organizationId,
    environment,
    type: event.type,
    subject_type: event.subject.type,
    subject_id: event.subject.id,
    data: JSON.stringify(event.data),
    created_at: now,
    endpoint_ids: [event.endpointId],
    route: 'direct',
  }
  return decidedEvent(
    { type: 'WebhookEventRaised', data },
    { organizationId, environment, eventId, now },
  )
}
