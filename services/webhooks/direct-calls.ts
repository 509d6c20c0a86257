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
import type { PostOutcome } from '../../infra/safe-http/client.ts'
import type { Logger } from '../../infra/telemetry.ts'
import {
  type DirectAnswer,
  type DirectAttempt,
  type DirectCalls,
  type DirectDelivery,
  type DirectEvent,
  type DirectRefusal,
  directType,
} from '../../infra/wire/webhooks/direct-call.ts'
import { organizationStatuses } from '../../projections/organizations/queries.ts'
import {
  findDelivery,
  findEndpoints,
  findEvents,
  raisedEventIds,
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
import { createEndpointHealth } from './endpoints/give-up.ts'

interface DirectCallsOptions extends AttemptDeps {
  decideAs: DecideAs
  pool: Db
  log: Pick<EventLog, 'append'>
  codec: EventCodec
  logger: Logger
}

/** Creates the calls that bypass the queue: the sender makes them itself and waits for the response. */
export function createDirectCalls(options: DirectCallsOptions): DirectCalls {
  const { decideAs, pool, log, codec, clock, logger } = options
  const decide = decideAs({ type: 'service', id: 'gate' })
  const endpointHealth = createEndpointHealth({ decideAs, db: pool, clock, logger })

  async function append({ event, meta }: DecidedEvent<TrafficEvent>): Promise<void> {
    await codec.prepare([event])
    await log.append([codec.toRecord(event, meta)])
  }

  async function attempt(
    { event, endpoint, delivery }: DirectJob,
    request: DirectAttempt,
  ): Promise<DirectAnswer> {
    const { attempt: number, timeoutMs } = request
    const posted = await makeAttempt(options, { event, endpoint, timeoutMs })
    const answer = answerOf(posted.outcome, request)
    const finished: FinishedAttempt = {
      event,
      endpoint,
      deliveryId: delivery.id,
      number,
      ...posted,
      result: results[answer.kind],
      nextAttemptAt: null,
      error: answer.kind === 'accepted' ? undefined : answer.problem,
    }
    if (finished.result === 'succeeded')
      logger.debug(attemptLogFields(finished), 'webhook delivered directly')
    else logger.info(attemptLogFields(finished), 'direct webhook delivery failed')
    // Before returning, so that the log has the attempt before anything that the caller does in response.
    await append(attemptedEvent(finished))
    void endpointHealth.evaluate(finished)
    return answer
  }

  return {
    raise: (event) => raiseDirect(decide, event),
    async attempt(request) {
      const job = await loadDirectJob(pool, request)
      return typeof job === 'string' ? { kind: 'not_sent', reason: job } : attempt(job, request)
    },
    async giveUp(ids, reason) {
      const delivery = await findDirectDelivery(pool, ids)
      if (delivery)
        await append(skippedEvent(delivery, { reason, occasion: 'given up', now: clock() }))
    },
  }
}

const results = { accepted: 'succeeded', retry: 'retrying', failed: 'failed' } as const

type SentAnswer = Exclude<DirectAnswer, { kind: 'not_sent' }>

function answerOf(outcome: PostOutcome, { judge, isLast }: DirectAttempt): SentAnswer {
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

// undefined if the event was not raised for this endpoint, or its delivery belongs to the queue.
async function findDirectDelivery(
  db: Db,
  { eventId, endpointId }: DirectDelivery,
): Promise<DeliveryRow | undefined> {
  const delivery = await findDelivery(db, derivedHexId('wdlv', eventId, endpointId))
  return delivery?.event_type === directType ? delivery : undefined
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
  if (delivery.status === 'failed' || delivery.status === 'skipped') return 'ended'
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
    load: async (tx) => (await raisedEventIds(tx, [eventId])).has(eventId),
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
