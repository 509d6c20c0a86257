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
import { attemptedEvent, attemptLine, type MadeAttempt, skippedEvent } from './deliveries/decide.ts'
import { createGiveUp } from './endpoints/give-up.ts'

interface DirectCallsOptions extends AttemptDeps {
  decideAs: DecideAs
  pool: Db
  log: Pick<EventLog, 'append'>
  codec: EventCodec
  logger: Logger
}

export function createDirectCalls(options: DirectCallsOptions): DirectCalls {
  const { decideAs, pool, log, codec, clock, logger } = options
  const decide = decideAs({ type: 'service', id: 'gate' })
  const giveUp = createGiveUp({ decideAs, db: pool, clock, logger })

  async function append({ event, meta }: DecidedEvent<TrafficEvent>): Promise<void> {
    await codec.prepare([event])
    await log.append([codec.toRecord(event, meta)])
  }

  async function call(
    { event, endpoint, delivery }: DirectJob,
    request: DirectAttempt,
  ): Promise<DirectAnswer> {
    const { attempt, timeoutMs } = request
    const posted = await makeAttempt(options, { event, endpoint, timeoutMs })
    const answer = answerOf(posted.outcome, request)
    const made: MadeAttempt = {
      event,
      endpoint,
      deliveryId: delivery.id,
      attempt,
      ...posted,
      result: results[answer.kind],
      nextAttemptAt: null,
      error: answer.kind === 'accepted' ? undefined : answer.problem,
    }
    if (made.result === 'succeeded') logger.debug(attemptLine(made), 'webhook delivered directly')
    else logger.info(attemptLine(made), 'webhook not delivered directly')
    // Before the caller knows: what it does about the answer must not be on the log without the attempt.
    await append(attemptedEvent(made))
    void giveUp.judge(made)
    return answer
  }

  return {
    raise: (event) => raiseDirect(decide, event),
    async attempt(request) {
      const job = await loadDirect(pool, request)
      return typeof job === 'string' ? { kind: 'not_sent', reason: job } : call(job, request)
    },
    async giveUp(which, reason) {
      const delivery = await findDirectDelivery(pool, which)
      if (delivery)
        await append(skippedEvent(delivery, { reason, occasion: 'given up', now: clock() }))
    },
  }
}

const results = { accepted: 'succeeded', retry: 'retrying', failed: 'failed' } as const

type SentAnswer = Exclude<DirectAnswer, { kind: 'not_sent' }>

function answerOf(outcome: PostOutcome, { judge, isLast }: DirectAttempt): SentAnswer {
  const lastly = isLast ? 'failed' : 'retry'
  if (outcome.kind === 'failure') return { kind: lastly, problem: outcome.message }
  const response = { status: outcome.status, body: outcome.body }
  const judgement = judge(response)
  if (judgement.kind === 'accepted') return { kind: 'accepted', response }
  return { kind: judgement.kind === 'refuse' ? 'failed' : lastly, problem: judgement.problem }
}

interface DirectJob {
  event: WebhookEventRow
  endpoint: EndpointRow
  delivery: DeliveryRow
}

// undefined unless the event was raised for this endpoint, to be delivered directly.
async function findDirectDelivery(
  db: Db,
  { eventId, endpointId }: DirectDelivery,
): Promise<DeliveryRow | undefined> {
  const delivery = await findDelivery(db, derivedHexId('wdlv', eventId, endpointId))
  // Any other is the queue's.
  return delivery?.event_type === directType ? delivery : undefined
}

async function loadDirect(db: Db, which: DirectDelivery): Promise<DirectJob | DirectRefusal> {
  const { eventId, endpointId } = which
  const [delivery, events, endpoints] = await Promise.all([
    findDirectDelivery(db, which),
    findEvents(db, [eventId]),
    findEndpoints(db, [endpointId]),
  ])
  const [event, endpoint] = [events.get(eventId), endpoints.get(endpointId)]
  if (!delivery || !event) return 'not_raised'
  if (delivery.status === 'failed' || delivery.status === 'skipped') return 'ended'
  if (event.data === unreadableData) return 'event_unreadable'
  if (!endpoint || !isOfTenant(endpoint, event)) return 'endpoint_unknown'
  const refusal = endpointRefusal(endpoint, event) ?? (await organizationRefusal(db, event))
  return refusal ?? { event, endpoint, delivery }
}

function isOfTenant(endpoint: EndpointRow, event: WebhookEventRow): boolean {
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
    decide: (isRaised) => (isRaised ? [] : [raised(eventId, event)]),
  })
  return eventId
}

function raised(eventId: DecisionId, event: DirectEvent): DecidedEvent {
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
