import { derivedHexId, webhookEventId } from '../../../infra/ids.ts'
import { type DeliveryEnvelope, deliveryAlgorithm } from '../../../infra/wire/delivery-envelope.ts'
import {
  type DirectCalls,
  type DirectDelivery,
  type DirectEvent,
  type DirectRefusal,
  type DirectResponse,
  type DirectSchedule,
  directType,
  nextDirectAttempt,
} from '../../../infra/wire/webhooks/direct-call.ts'
import { findDelivery } from '../../../projections/webhooks/queries.ts'
import type { DeliveryRow } from '../../../projections/webhooks/tables.ts'
import type { GateParts } from '../context.ts'
import { deliveryKeyOf, judgeAnswer, type StartedSession } from './decide.ts'

export interface ApprovalDeps extends GateParts {
  sleep: (ms: number, signal: AbortSignal) => Promise<unknown>
}

export interface AccountRequest {
  session: StartedSession
  /** Ends the wait for the next attempt, not an attempt. */
  signal: AbortSignal
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
  event_unreadable: 'The data key of the signup is gone, so the request cannot be sent.',
}

/**
 * Requests the account from the service until it answers, refuses, or time is over. Goes on with the attempt that a crash
 * interrupted, by the read model of webhooks. A good answer that got lost is requested again, since the service knows the
 * event's id. Rejects when it is aborted, or when log or database do not answer.
 */
export async function requestAccount(
  deps: ApprovalDeps,
  request: AccountRequest,
): Promise<AccountAnswer> {
  const { clock, directCalls, integratorTimeoutMs: timeoutMs } = deps
  const { session } = request
  const { organization_id: organizationId, webhook_endpoint_id: endpointId } = session
  if (organizationId === null || endpointId === null) return failed(refusals.endpoint_unknown)
  const eventId = await directCalls.raise(approvalEvent(session, { organizationId, endpointId }))
  const which = { eventId, endpointId }
  const delivery = await deliveryOf(deps, which)
  if (delivery.status === 'failed' || delivery.status === 'skipped')
    return failed(delivery.error ?? silent)

  let { number, schedule, problem } = progressOf(delivery, { session, timeoutMs })
  for (;;) {
    const next = nextFrom(schedule, clock())
    if (!next) return giveUp(directCalls, which, problem ?? silent)
    await deps.sleep(next.at - clock(), request.signal)
    const judge = (response: DirectResponse) => judgeAnswer(response, session.delivery_key_id)
    const call = { ...which, attempt: number, timeoutMs, isLast: next.isLast, judge }
    const answer = await directCalls.attempt(call)
    switch (answer.kind) {
      case 'accepted':
        return answered(answer.response, request)
      case 'failed':
        return failed(answer.problem)
      case 'not_sent':
        return notSent(deps, which, answer.reason)
      case 'retry':
        problem = answer.problem
        number += 1
        schedule = { ...schedule, attempts: schedule.attempts + 1, since: clock() }
        break
      default:
        return answer satisfies never
    }
  }
}

/** Gives the delivery up, if the event was raised and the delivery has not ended. */
export async function stopRequest(
  { directCalls, pool }: ApprovalDeps,
  { id, webhook_endpoint_id: endpointId }: StartedSession,
  problem: string,
): Promise<void> {
  if (endpointId === null) return
  const which = { eventId: webhookEventId(directType, id), endpointId }
  const delivery = await findDelivery(pool, deliveryId(which))
  if (delivery?.status === 'pending') await directCalls.giveUp(which, problem)
}

const failed = (problem: string): AccountAnswer => ({ kind: 'failed', problem })

const deliveryId = ({ eventId, endpointId }: DirectDelivery) =>
  derivedHexId('wdlv', eventId, endpointId)

async function deliveryOf({ pool }: ApprovalDeps, which: DirectDelivery): Promise<DeliveryRow> {
  const delivery = await findDelivery(pool, deliveryId(which))
  if (delivery) return delivery
  throw new Error(`the delivery of ${which.eventId} to ${which.endpointId} is not readable`)
}

function answered(response: DirectResponse, { session }: AccountRequest): AccountAnswer {
  const answer = judgeAnswer(response, session.delivery_key_id)
  if (answer.kind !== 'accepted') throw new Error('an accepted answer was judged otherwise')
  return { kind: 'answered', envelope: answer.envelope }
}

async function giveUp(
  calls: DirectCalls,
  which: DirectDelivery,
  problem: string,
): Promise<AccountAnswer> {
  await calls.giveUp(which, problem)
  return failed(problem)
}

async function notSent(
  deps: ApprovalDeps,
  which: DirectDelivery,
  reason: DirectRefusal,
): Promise<AccountAnswer> {
  if (reason === 'not_raised') throw new Error(`${which.eventId} was raised and is not readable`)
  if (reason !== 'ended') return giveUp(deps.directCalls, which, refusals[reason])
  return failed((await deliveryOf(deps, which)).error ?? silent)
}

/** How long after the session's end an answer that got lost in a crash is requested. */
const lostAnswerMs = 15 * 60 * 1000
// Long enough for one attempt at least where a person approves at the last moment.
const slackMs = 2000

function progressOf(
  { status, attempts, updated_at: since, error: problem }: DeliveryRow,
  { session, timeoutMs }: Pick<AccountRequest, 'session'> & { timeoutMs: number },
): { number: number; schedule: DirectSchedule; problem: string | null } {
  const deadline = deadlineOf(session, timeoutMs)
  if (status !== 'succeeded') {
    return { number: attempts + 1, schedule: { attempts, since, timeoutMs, deadline }, problem }
  }
  // The same attempt is made once more, and the schedule begins anew.
  const schedule = { attempts: 0, since, timeoutMs, deadline: deadline + lostAnswerMs }
  return { number: attempts, schedule, problem }
}

function deadlineOf(
  { expires_at, approval_started_at }: StartedSession,
  timeoutMs: number,
): number {
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

// The payload is GateApprovedWebhookPayload of `/openapi.json`.
function approvalEvent(
  session: StartedSession,
  { organizationId, endpointId }: { organizationId: string; endpointId: string },
): DirectEvent {
  const { id, service_id, gate_account_id, account_name, metadata, verdict, risk_score } = session
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
      delivery: { version: 1, algorithm: deliveryAlgorithm, ...deliveryKeyOf(session) },
    },
  }
}
