import { type Clock, derivedHexId } from '../../../infra/ids.ts'
import type { Db } from '../../../infra/postgres/pool.ts'
import type { DeliveryEnvelope } from '../../../infra/wire/delivery-envelope.ts'
import {
  type DirectAnswer,
  type DirectCalls,
  type DirectDelivery,
  type DirectRefusal,
  directType,
} from '../../../infra/wire/webhooks/direct-call.ts'
import { webhookEventId } from '../../../infra/wire/webhooks/events.ts'
import { findDelivery } from '../../../projections/webhooks/queries.ts'
import type { DeliveryRow } from '../../../projections/webhooks/tables.ts'
import type { StartedSession } from './finish-approval.ts'
import { type Answered, judgeAnswer } from './judge.ts'
import { nextFrom, progressOf } from './progress.ts'
import { approvalEvent } from './webhook-event.ts'

/** Rejects when the signal ends it. */
export type Wait = (ms: number, signal: AbortSignal) => Promise<unknown>

export interface AskDeps {
  pool: Db
  clock: Clock
  directCalls: DirectCalls
  /** For one answer, in milliseconds. */
  integratorTimeoutMs: number
  wait: Wait
}

interface Ask {
  session: StartedSession
  /** Ends waiting for the next attempt, not an attempt. */
  signal: AbortSignal
}

export type Asked = { kind: 'answered'; envelope: DeliveryEnvelope } | { kind: 'failed'; problem: string }

const silent = 'The service did not answer within the time of the signup.'
/** What is said of a service that cannot be asked; it is told to whoever signed up. */
const refusals: Record<Exclude<DirectRefusal, 'ended' | 'not_raised'>, string> = {
  organization_inactive: "The service's organization is not active.",
  endpoint_unknown: 'The service has no webhook endpoint.',
  endpoint_disabled: "The service's webhook endpoint is disabled.",
  endpoint_not_subscribed: "The service's webhook endpoint does not take approvals.",
}

/**
 * Asks the service for the account until it answers, refuses, or the session's time is over. Everything that was done
 * before is in the read model of webhooks, so whoever asks again goes on with the attempt that a crash interrupted. An
 * answer that was good and got lost is asked for again: the service knows the event's id. Rejects when it is
 * interrupted, and when the log or the database cannot be reached: ask again.
 */
export async function askService(deps: AskDeps, { session, signal }: Ask): Promise<Asked> {
  const { organization_id: organizationId, webhook_endpoint_id: endpointId } = session
  if (organizationId === null || endpointId === null) return failed(refusals.endpoint_unknown)
  const eventId = await deps.directCalls.raise(approvalEvent(session, { organizationId, endpointId }))
  const delivery = await deliveryOf(deps.pool, { eventId, endpointId })
  if (hasFailed(delivery)) return failed(delivery.error ?? silent)
  return attemptAll(deps, { session, signal, delivery })
}

/** No attempt follows: gives the delivery up, if the event was raised and nothing has ended it. */
export async function stopAsking(
  { directCalls, pool }: Pick<AskDeps, 'directCalls' | 'pool'>,
  { id, webhook_endpoint_id: endpointId }: StartedSession,
  problem: string,
): Promise<void> {
  if (endpointId === null) return
  const which = { eventId: webhookEventId(directType, id), endpointId }
  const delivery = await findDelivery(pool, deliveryId(which))
  if (delivery?.status === 'pending') await directCalls.giveUp(which, problem)
}

const failed = (problem: string): Asked => ({ kind: 'failed', problem })

const deliveryId = ({ eventId, endpointId }: DirectDelivery) => derivedHexId('wdlv', eventId, endpointId)

async function deliveryOf(pool: Db, which: DirectDelivery): Promise<DeliveryRow> {
  const { eventId, endpointId } = which
  const delivery = await findDelivery(pool, deliveryId(which))
  if (!delivery) throw new Error(`the delivery of ${eventId} to ${endpointId} is not readable`)
  return delivery
}

const hasFailed = ({ status }: DeliveryRow) => status === 'failed' || status === 'skipped'

async function attemptAll(deps: AskDeps, { session, signal, delivery }: Ask & { delivery: DeliveryRow }) {
  const { directCalls, clock, wait, pool } = deps
  const which = { eventId: delivery.event_id, endpointId: delivery.endpoint_id }
  let progress = progressOf(delivery, { session, timeoutMs: deps.integratorTimeoutMs })
  for (;;) {
    const next = nextFrom(progress, clock())
    if (!next) return giveUp(directCalls, which, progress.problem ?? silent)
    await wait(next.at - clock(), signal)
    const answer = await attempt(deps, { session, ...which, number: progress.number, isLast: next.isLast })
    if (answer.kind === 'accepted') return answered(answer, session)
    if (answer.kind === 'failed') return failed(answer.problem)
    if (answer.kind === 'not_sent') return refused(directCalls, which, { reason: answer.reason, pool })
    const { number, attempts } = progress
    const { problem } = answer
    progress = { ...progress, number: number + 1, attempts: attempts + 1, since: clock(), problem }
  }
}

interface Attempt extends DirectDelivery {
  session: StartedSession
  number: number
  isLast: boolean
}

function attempt(deps: AskDeps, { session, number, ...call }: Attempt): Promise<DirectAnswer> {
  return deps.directCalls.attempt({
    ...call,
    attempt: number,
    timeoutMs: deps.integratorTimeoutMs,
    judge: (response) => judgeAnswer(response, session.delivery_key_id),
  })
}

function answered({ response }: Extract<DirectAnswer, { kind: 'accepted' }>, session: StartedSession): Asked {
  const answer: Answered = judgeAnswer(response, session.delivery_key_id)
  if (answer.kind !== 'accepted') throw new Error('an accepted answer was judged otherwise')
  return { kind: 'answered', envelope: answer.envelope }
}

async function giveUp(calls: DirectCalls, which: DirectDelivery, problem: string): Promise<Asked> {
  await calls.giveUp(which, problem)
  return failed(problem)
}

async function refused(
  calls: DirectCalls,
  which: DirectDelivery,
  { reason, pool }: { reason: DirectRefusal; pool: Db },
): Promise<Asked> {
  if (reason === 'not_raised') throw new Error(`${which.eventId} was raised and is not readable`)
  if (reason !== 'ended') return giveUp(calls, which, refusals[reason])
  return failed((await deliveryOf(pool, which)).error ?? silent)
}
