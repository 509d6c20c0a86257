import { type Clock, derivedHexId, webhookEventId } from '../../../infra/ids.ts'
import type { Db } from '../../../infra/postgres/pool.ts'
import { type DeliveryEnvelope, deliveryAlgorithm } from '../../../infra/wire/delivery-envelope.ts'
import {
  type DirectAnswer,
  type DirectCalls,
  type DirectDelivery,
  type DirectEvent,
  type DirectRefusal,
  type DirectSchedule,
  directType,
  nextDirectAttempt,
} from '../../../infra/wire/webhooks/direct-call.ts'
import { findDelivery } from '../../../projections/webhooks/queries.ts'
import type { DeliveryRow } from '../../../projections/webhooks/tables.ts'
import { deliveryKeyOf, judgeAnswer, type StartedSession } from './decide.ts'

export type Sleep = (ms: number, signal: AbortSignal) => Promise<unknown>

export interface AccountRequestDeps {
  pool: Db
  clock: Clock
  directCalls: DirectCalls
  integratorTimeoutMs: number
  sleep: Sleep
}

export interface AccountRequest {
  session: StartedSession
  /** Ends the wait for the next attempt, not an attempt. */
  signal: AbortSignal
  /** Of an account that the service has made: it is asked for its credentials again, until then. */
  again?: { until: number } | undefined
}

export type AccountAnswer =
  | { kind: 'answered'; envelope: DeliveryEnvelope }
  | { kind: 'failed'; problem: string }

const silent = 'The service did not answer within the time of the signup.'
const refusals: Record<Exclude<DirectRefusal, 'ended' | 'not_raised'>, string> = {
  organization_inactive: "The service's organization is not active.",
  endpoint_unknown: 'The service has no webhook endpoint.',
  endpoint_disabled: "The service's webhook endpoint is disabled.",
  endpoint_not_subscribed: "The service's webhook endpoint does not take approvals.",
}

/**
 * Asks the service for the account until it answers, refuses, or time is over. Goes on with the attempt that a crash
 * interrupted, by the read model of webhooks. A good answer that got lost is asked for again: the service knows the
 * event's id. Rejects when it is aborted, or when log or database do not answer.
 */
export async function requestAccount(
  deps: AccountRequestDeps,
  request: AccountRequest,
): Promise<AccountAnswer> {
  const { session } = request
  const { organization_id: organizationId, webhook_endpoint_id: endpointId } = session
  if (organizationId === null || endpointId === null) return failed(refusals.endpoint_unknown)
  const eventId = await deps.directCalls.raise(approvalEvent(session, { organizationId, endpointId }))
  const delivery = await deliveryOf(deps.pool, { eventId, endpointId })
  if (hasFailed(delivery)) return failed(delivery.error ?? silent)
  return attemptAll(deps, { ...request, delivery })
}

/** Gives the delivery up, if the event was raised and the delivery has not ended. */
export async function stopRequest(
  { directCalls, pool }: Pick<AccountRequestDeps, 'directCalls' | 'pool'>,
  { id, webhook_endpoint_id: endpointId }: StartedSession,
  problem: string,
): Promise<void> {
  if (endpointId === null) return
  const which = { eventId: webhookEventId(directType, id), endpointId }
  const delivery = await findDelivery(pool, deliveryId(which))
  if (delivery?.status === 'pending') await directCalls.giveUp(which, problem)
}

const failed = (problem: string): AccountAnswer => ({ kind: 'failed', problem })

const deliveryId = ({ eventId, endpointId }: DirectDelivery) => derivedHexId('wdlv', eventId, endpointId)

async function deliveryOf(pool: Db, which: DirectDelivery): Promise<DeliveryRow> {
  const { eventId, endpointId } = which
  const delivery = await findDelivery(pool, deliveryId(which))
  if (!delivery) throw new Error(`the delivery of ${eventId} to ${endpointId} is not readable`)
  return delivery
}

const hasFailed = ({ status }: DeliveryRow) => status === 'failed' || status === 'skipped'

async function attemptAll(
  deps: AccountRequestDeps,
  { session, signal, again, delivery }: AccountRequest & { delivery: DeliveryRow },
) {
  const { directCalls, clock, sleep, pool } = deps
  const which = { eventId: delivery.event_id, endpointId: delivery.endpoint_id }
  let progress = progressOf(delivery, { session, again, timeoutMs: deps.integratorTimeoutMs })
  for (;;) {
    const next = nextFrom(progress, clock())
    if (!next) return giveUp(directCalls, which, progress.problem ?? silent)
    await sleep(next.at - clock(), signal)
    const answer = await attempt(deps, {
      session,
      again,
      ...which,
      number: progress.number,
      isLast: next.isLast,
    })
    if (answer.kind === 'accepted') return answered(answer, session)
    if (answer.kind === 'failed') return failed(answer.problem)
    if (answer.kind === 'not_sent') return refused(directCalls, which, { reason: answer.reason, pool })
    const { number, attempts } = progress
    const { problem } = answer
    progress = { ...progress, number: number + 1, attempts: attempts + 1, since: clock(), problem }
  }
}

interface Attempt extends DirectDelivery, Pick<AccountRequest, 'session' | 'again'> {
  number: number
  isLast: boolean
}

function attempt(
  deps: AccountRequestDeps,
  { session, again, number, ...call }: Attempt,
): Promise<DirectAnswer> {
  return deps.directCalls.attempt({
    ...call,
    attempt: number,
    timeoutMs: deps.integratorTimeoutMs,
    judge(response) {
      const judgement = judgeAnswer(response, session.delivery_key_id)
      // The account exists: a refusal now is no decision about it.
      return again && judgement.kind === 'refuse' ? { ...judgement, kind: 'retry' } : judgement
    },
  })
}

function answered(
  { response }: Extract<DirectAnswer, { kind: 'accepted' }>,
  session: StartedSession,
): AccountAnswer {
  const answer = judgeAnswer(response, session.delivery_key_id)
  if (answer.kind !== 'accepted') throw new Error('an accepted answer was judged otherwise')
  return { kind: 'answered', envelope: answer.envelope }
}

async function giveUp(calls: DirectCalls, which: DirectDelivery, problem: string): Promise<AccountAnswer> {
  await calls.giveUp(which, problem)
  return failed(problem)
}

async function refused(
  calls: DirectCalls,
  which: DirectDelivery,
  { reason, pool }: { reason: DirectRefusal; pool: Db },
): Promise<AccountAnswer> {
  if (reason === 'not_raised') throw new Error(`${which.eventId} was raised and is not readable`)
  if (reason !== 'ended') return giveUp(calls, which, refusals[reason])
  return failed((await deliveryOf(pool, which)).error ?? silent)
}

interface RequestProgress extends DirectSchedule {
  number: number
  problem: string | null
}

/** How long after the session's end an answer that got lost in a crash is asked for. */
export const lostAnswerMs = 15 * 60 * 1000
// Who approves at the last moment has the service asked once, at least.
const slackMs = 2000

function progressOf(
  { status, attempts, updated_at: since, error: problem }: DeliveryRow,
  { session, again, timeoutMs }: Pick<AccountRequest, 'session' | 'again'> & { timeoutMs: number },
): RequestProgress {
  const deadline = deadlineOf(session, timeoutMs)
  if (status === 'succeeded') {
    // The same attempt once more, and now: the schedule begins anew.
    const until = again?.until ?? deadline + lostAnswerMs
    return { number: attempts, attempts: 0, since, timeoutMs, deadline: until, problem }
  }
  return { number: attempts + 1, attempts, since, timeoutMs, deadline, problem }
}

function deadlineOf({ expires_at, approval_started_at }: StartedSession, timeoutMs: number): number {
  return Math.max(expires_at, approval_started_at + timeoutMs + slackMs)
}

/** After this an approval can only be ended. */
export function overdueAt(session: StartedSession, timeoutMs: number): number {
  return deadlineOf(session, timeoutMs) + lostAnswerMs + slackMs
}

// Like `nextDirectAttempt`, for an attempt that is overdue because no process made it.
function nextFrom(schedule: DirectSchedule, now: number) {
  const next = nextDirectAttempt(schedule)
  if (!next || next.at >= now) return next
  const waited = next.at - schedule.since
  return nextDirectAttempt({ ...schedule, since: now - waited })
}

interface Receiver {
  organizationId: string
  endpointId: string
}

// GateApprovedWebhookPayload of contract/openapi.json.
function approvalEvent(session: StartedSession, { organizationId, endpointId }: Receiver): DirectEvent {
  const { id, service_id, gate_account_id, account_name, metadata, verdict, risk_score } = session
  const delivery = { version: 1, algorithm: deliveryAlgorithm, ...deliveryKeyOf(session) }
  return {
    type: directType,
    organizationId,
    environment: session.environment,
    endpointId,
    subject: { type: 'gate_session', id },
    createdAt: session.approval_started_at,
    data: {
      service_id,
      gate_session_id: id,
      gate_account_id,
      account_name,
      metadata: metadata === null ? null : JSON.parse(metadata),
      // 0 to 1 here, as in the golden vector; a session's risk_score is 0 to 100.
      foil: { verdict, score: risk_score / 100 },
      delivery,
    },
  }
}
