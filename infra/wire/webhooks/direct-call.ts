import type { Environment } from '../../../schemas/events.ts'
import type { DecisionId } from '../../ids.ts'
import type { SubscribableType } from './events.ts'

/** The event type whose sender needs the receiver's response. The response is never stored. */
export const directType = 'gate.session.approved' satisfies SubscribableType

export interface DirectEvent {
  type: typeof directType
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

/** Reasons for not sending. `ended`: the delivery failed or was cancelled; a successful one can be repeated. */
export type DirectRefusal =
  | 'not_raised'
  | 'ended'
  | 'organization_inactive'
  | 'endpoint_unknown'
  | 'endpoint_disabled'
  | 'endpoint_not_subscribed'
  | 'event_unreadable'

export type DirectAnswer =
  | { kind: 'accepted'; response: DirectResponse }
  | { kind: 'retry'; problem: string }
  | { kind: 'failed'; problem: string }
  | { kind: 'not_sent'; reason: DirectRefusal }

/** Synchronous deliveries: the sender makes the calls itself and waits for the responses. The queue ignores them. */
export interface DirectCalls {
  /** Raises an event once; resolves when it is readable. Idempotent. Rejects with ApiError service.unavailable. */
  raise(event: DirectEvent): Promise<DecisionId>
  /**
   * Calls the receiver once and records the result. Rejects if it could not be recorded (LogUnavailable) or a signing
   * secret cannot be decrypted. The caller must then repeat the attempt under the same number.
   */
  attempt(attempt: DirectAttempt): Promise<DirectAnswer>
  /** Records that the delivery was cancelled. `reason` is for the endpoint's owner. */
  giveUp(delivery: DirectDelivery, reason: string): Promise<void>
}

// Backoff before each attempt (open-points.md 37).
const waitsSeconds = [0, 1, 2, 4, 8, 15, 30]
const maxWaitSeconds = 60

export interface DirectSchedule {
  attempts: number
  /** End of the last attempt, or time of the event. Times are epoch milliseconds. */
  since: number
  deadline: number
  timeoutMs: number
}

/**
 * Returns the time of the next attempt; undefined if the deadline leaves no time. `isLast`: no time for another after
 * it.
 */
export function nextDirectAttempt(
  schedule: DirectSchedule,
): { at: number; isLast: boolean } | undefined {
  const { attempts, since, deadline, timeoutMs } = schedule
  const at = since + waitMs(attempts)
  const latestEnd = at + timeoutMs
  if (latestEnd > deadline) return undefined
  return { at, isLast: latestEnd + waitMs(attempts + 1) + timeoutMs > deadline }
}

const waitMs = (attempts: number): number => (waitsSeconds[attempts] ?? maxWaitSeconds) * 1000
