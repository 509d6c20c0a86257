// Requests the account of an approved signup from the service, with a webhook event that is delivered directly and
// retried until the service responds with the encrypted credentials.
//   - Attempts are recorded in the webhooks read model, so another process can resume after a crash.
//   - The event id is derived from the session, so a service that already created the account can return it again.

import { derivedHexId, webhookEventId } from '../../../infra/ids.ts'
import { type DeliveryEnvelope, deliveryAlgorithm } from '../../../infra/wire/delivery-envelope.ts'
import {
  type DirectCalls,
  type DirectDelivery,
  type DirectEvent,
  type DirectRefusal,
  type DirectResponse,
  type DirectSchedule,
  directEventType,
  nextDirectAttempt,
} from '../../../infra/wire/webhooks/direct-call.ts'
import { findDelivery } from '../../../projections/webhooks/queries.ts'
import type { DeliveryRow } from '../../../projections/webhooks/tables.ts'
import type { GateParts } from '../context.ts'
import { deliveryKeyOf, judgeResponse, type StartedSession } from './decide.ts'

export interface ApprovalDeps extends GateParts {
  sleep: (ms: number, signal: AbortSignal) => Promise<unknown>
}

export interface AccountRequest {
  session: StartedSession
  /** Aborts the wait for the next attempt, but not an attempt in flight. */
  signal: AbortSignal
}

export type AccountResult =
  | { kind: 'provided'; envelope: DeliveryEnvelope }
  | { kind: 'failed'; problem: string }

const noResponse = 'The service did not respond before the signup expired.'
const refusals: Record<Exclude<DirectRefusal, 'already_failed' | 'not_raised'>, string> = {
  organization_inactive: "The service's organization is not active.",
  endpoint_unknown: 'The service has no webhook endpoint.',
  endpoint_disabled: "The service's webhook endpoint is disabled.",
  endpoint_not_subscribed: "The service's webhook endpoint is not subscribed to approvals.",
  event_unreadable: 'The data key of the signup is gone, so the request cannot be sent.',
}

/**
 * Requests the account until the service provides or refuses it, or the deadline has passed. Resumes the attempts of a
 * crashed process, and repeats an attempt whose response was lost. Rejects if aborted, or if the log or the database is
 * unavailable.
 */
export async function requestAccount(
  deps: ApprovalDeps,
  request: AccountRequest,
): Promise<AccountResult> {
  const { clock, directCalls, integratorTimeoutMs: timeoutMs } = deps
  const { session } = request
  const { organization_id: organizationId, webhook_endpoint_id: endpointId } = session
  if (organizationId === null || endpointId === null) return failed(refusals.endpoint_unknown)
  const eventId = await directCalls.raise(approvalEvent(session, { organizationId, endpointId }))
  const target = { eventId, endpointId }
  const delivery = await requireDeliveryRow(deps, target)
  if (delivery.status === 'failed' || delivery.status === 'skipped')
    return failed(delivery.error ?? noResponse)

  let { attempt, schedule, problem } = resumeFrom(delivery, { session, timeoutMs })
  for (;;) {
    const next = nextAttempt(schedule, clock())
    if (!next) return cancelDelivery(directCalls, target, problem ?? noResponse)
    await deps.sleep(next.at - clock(), request.signal)
    const judge = (response: DirectResponse) => judgeResponse(response, session.delivery_key_id)
    const call = { ...target, attempt, timeoutMs, isLast: next.isLast, judge }
    const result = await directCalls.attempt(call)
    switch (result.kind) {
      case 'accepted':
        return provided(result.response, request)
      case 'failed':
        return failed(result.problem)
      case 'not_sent':
        return notSent(deps, target, result.reason)
      case 'retry':
        problem = result.problem
        attempt += 1
        schedule = { ...schedule, attempts: schedule.attempts + 1, since: clock() }
        break
      default:
        return result satisfies never
    }
  }
}

/** Cancels the delivery if it is still pending. */
export async function abandonRequest(
  { directCalls, pool }: ApprovalDeps,
  { id, webhook_endpoint_id: endpointId }: StartedSession,
  problem: string,
): Promise<void> {
  if (endpointId === null) return
  const target = { eventId: webhookEventId(directEventType, id), endpointId }
  const delivery = await findDelivery(pool, deliveryId(target))
  if (delivery?.status === 'pending') await directCalls.cancel(target, problem)
}

const failed = (problem: string): AccountResult => ({ kind: 'failed', problem })

const deliveryId = ({ eventId, endpointId }: DirectDelivery) =>
  derivedHexId('wdlv', eventId, endpointId)

async function requireDeliveryRow(
  { pool }: ApprovalDeps,
  target: DirectDelivery,
): Promise<DeliveryRow> {
  const delivery = await findDelivery(pool, deliveryId(target))
  if (delivery) return delivery
  throw new Error(`the delivery of ${target.eventId} to ${target.endpointId} is not readable`)
}

function provided(response: DirectResponse, { session }: AccountRequest): AccountResult {
  const judgment = judgeResponse(response, session.delivery_key_id)
  if (judgment.kind !== 'accepted') throw new Error('an accepted response was judged otherwise')
  return { kind: 'provided', envelope: judgment.envelope }
}

async function cancelDelivery(
  calls: DirectCalls,
  target: DirectDelivery,
  problem: string,
): Promise<AccountResult> {
  await calls.cancel(target, problem)
  return failed(problem)
}

async function notSent(
  deps: ApprovalDeps,
  target: DirectDelivery,
  reason: DirectRefusal,
): Promise<AccountResult> {
  if (reason === 'not_raised') throw new Error(`${target.eventId} was raised and is not readable`)
  if (reason !== 'already_failed') return cancelDelivery(deps.directCalls, target, refusals[reason])
  return failed((await requireDeliveryRow(deps, target)).error ?? noResponse)
}

// Extends the deadline for an attempt that succeeded but whose response was lost in a crash.
const lostResponseMs = 15 * 60 * 1000
// Leaves time for at least one attempt if a person approves at the last moment.
const slackMs = 2000

function resumeFrom(
  { status, attempts, updated_at: since, error: problem }: DeliveryRow,
  { session, timeoutMs }: Pick<AccountRequest, 'session'> & { timeoutMs: number },
): { attempt: number; schedule: DirectSchedule; problem: string | null } {
  const deadline = deadlineOf(session, timeoutMs)
  if (status !== 'succeeded') {
    return { attempt: attempts + 1, schedule: { attempts, since, timeoutMs, deadline }, problem }
  }
  // The attempt succeeded but its response was lost, so repeat it on a new schedule.
  const schedule = { attempts: 0, since, timeoutMs, deadline: deadline + lostResponseMs }
  return { attempt: attempts, schedule, problem }
}

function deadlineOf(
  { expires_at, approval_started_at }: StartedSession,
  timeoutMs: number,
): number {
  return Math.max(expires_at, approval_started_at + timeoutMs + slackMs)
}

/** Returns the time (epoch milliseconds) after which the approval can only be rejected. */
export function overdueAt(session: StartedSession, timeoutMs: number): number {
  return deadlineOf(session, timeoutMs) + lostResponseMs + slackMs
}

// Like `nextDirectAttempt`, but an attempt that no process made in time is due now.
function nextAttempt(schedule: DirectSchedule, now: number) {
  const next = nextDirectAttempt(schedule)
  if (!next || next.at >= now) return next
  const waited = next.at - schedule.since
  return nextDirectAttempt({ ...schedule, since: now - waited })
}

// `data` is documented as GateApprovedWebhookPayload in `/openapi.json`.
function approvalEvent(
  session: StartedSession,
  { organizationId, endpointId }: { organizationId: string; endpointId: string },
): DirectEvent {
  const { id, service_id, gate_account_id, account_name, metadata, verdict, risk_score } = session
  return {
    type: directEventType,
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
      // 0 to 1 in this payload; a session's risk_score is 0 to 100.
      foil: { verdict, score: risk_score / 100 },
      delivery: { version: 1, algorithm: deliveryAlgorithm, ...deliveryKeyOf(session) },
    },
  }
}
