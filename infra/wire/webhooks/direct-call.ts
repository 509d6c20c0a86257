import type { Environment } from '../../../schemas/events.ts'
import type { DecisionId } from '../../ids.ts'
import type { SubscribableType } from './events.ts'

/** Event type whose sender needs the receiver's response, which is never stored. */
export const directEventType = 'gate.session.approved' satisfies SubscribableType

export interface DirectEvent {
  type: typeof directEventType
  organizationId: string
  environment: Environment
  endpointId: string
  subject: { type: string; id: string }
  /** Serializable as JSON. Every attempt sends the same bytes. */
  data: object
  createdAt: number
}

export interface DirectDelivery {
  eventId: string
  endpointId: string
}

export interface DirectResponse {
  status: number
  body: Buffer
}

/** Verdict on a response. `problem` is for the endpoint's owner and is stored, so it must not quote the response. */
type Judgment = { kind: 'accepted' } | { kind: 'retry' | 'refuse'; problem: string }

export interface DirectAttempt extends DirectDelivery {
  /** Starts at 1. An attempt repeated after a crash under the same number is recorded once. */
  attempt: number
  timeoutMs: number
  isLast: boolean
  judge(response: DirectResponse): Judgment
}

/** Reasons for not sending. `already_failed`: the delivery has failed for good or was cancelled. */
export type DirectRefusal =
  | 'not_raised'
  | 'already_failed'
  | 'organization_inactive'
  | 'endpoint_unknown'
  | 'endpoint_disabled'
  | 'endpoint_not_subscribed'
  | 'event_unreadable'

export type DirectResult =
  | { kind: 'accepted'; response: DirectResponse }
  | { kind: 'retry'; problem: string }
  | { kind: 'failed'; problem: string }
  | { kind: 'not_sent'; reason: DirectRefusal }

/** Synchronous deliveries: the sender makes the calls itself and waits for the responses. The queue ignores them. */
export interface DirectCalls {
  /** Raises an event and resolves when it is readable. Idempotent. Throws 503 `service.unavailable`. */
  raise(event: DirectEvent): Promise<DecisionId>
  /**
   * Calls the receiver once and records the result. Rejects if the result could not be recorded (LogUnavailable) or a
   * signing secret cannot be decrypted. The caller must then repeat the attempt under the same number.
   */
  attempt(attempt: DirectAttempt): Promise<DirectResult>
  /** Records that the delivery was cancelled. `reason` is for the endpoint's owner. */
  cancel(delivery: DirectDelivery, reason: string): Promise<void>
}

// Backoff before each attempt.
const backoffSeconds = [0, 1, 2, 4, 8, 15, 30]
const maxBackoffSeconds = 60

export interface DirectSchedule {
  attempts: number
  /** Start of the backoff: end of the last attempt, or time of the event. Times are epoch milliseconds. */
  since: number
  deadline: number
  timeoutMs: number
}

/**
 * Returns the time of the next attempt; undefined if the deadline leaves no time for one. `isLast`: there is no time
 * for another one after that.
 */
export function nextDirectAttempt(
  schedule: DirectSchedule,
): { at: number; isLast: boolean } | undefined {
  const { attempts, since, deadline, timeoutMs } = schedule
  const at = since + backoffMs(attempts)
  const latestEnd = at + timeoutMs
  if (latestEnd > deadline) return undefined
  return { at, isLast: latestEnd + backoffMs(attempts + 1) + timeoutMs > deadline }
}

const backoffMs = (attempts: number) => (backoffSeconds[attempts] ?? maxBackoffSeconds) * 1000
