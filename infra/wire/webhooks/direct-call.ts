import type { Environment } from '../../../schemas/events.ts'
import type { DecisionId } from '../../ids.ts'
import type { SubscribableType } from './events.ts'

/** The one type whose sender needs the receiver's answer. Nothing of the answer is ever stored. */
export const directType = 'gate.session.approved' satisfies SubscribableType

export interface DirectEvent {
  type: typeof directType
  organizationId: string
  environment: Environment
  endpointId: string
  subject: { type: string; id: string }
  /** Fit for JSON. Every attempt sends the same bytes. */
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

/** `problem` is for the endpoint's owner and is stored, so it must not quote the response. */
type Judgement = { kind: 'accepted' } | { kind: 'retry' | 'refuse'; problem: string }

export interface DirectAttempt extends DirectDelivery {
  /** From 1. An attempt that is made again after a crash, under the same number, is recorded once. */
  attempt: number
  timeoutMs: number
  isLast: boolean
  judge(response: DirectResponse): Judgement
}

/** `ended`: the delivery has failed or was given up; one that succeeded can be made again. */
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

/** Deliveries whose sender makes the calls itself and waits for the answers. The queue ignores them. */
export interface DirectCalls {
  /** Resolves when the event is readable; raised again, it stays as it was. Rejects with ApiError service.unavailable. */
  raise(event: DirectEvent): Promise<DecisionId>
  /**
   * Calls the receiver once and records the result. Rejects with LogUnavailable when it could not be recorded, and when a
   * signing secret cannot be opened. The attempt is then to be made again, under its number.
   */
  attempt(attempt: DirectAttempt): Promise<DirectAnswer>
  /** `reason` is for the endpoint's owner. */
  giveUp(delivery: DirectDelivery, reason: string): Promise<void>
}

// open-points.md 37
const waitsSeconds = [0, 1, 2, 4, 8, 15, 30]
const longestWaitSeconds = 60

export interface DirectSchedule {
  attempts: number
  /** When the last attempt ended, or when the event was raised. Times are epoch milliseconds. */
  since: number
  deadline: number
  timeoutMs: number
}

/** undefined when there is no time left. `isLast`: no other could follow if this one timed out. */
export function nextDirectAttempt(
  schedule: DirectSchedule,
): { at: number; isLast: boolean } | undefined {
  const { attempts, since, deadline, timeoutMs } = schedule
  const at = since + waitMs(attempts)
  const latestEnd = at + timeoutMs
  if (latestEnd > deadline) return undefined
  return { at, isLast: latestEnd + waitMs(attempts + 1) + timeoutMs > deadline }
}

const waitMs = (attempts: number): number => (waitsSeconds[attempts] ?? longestWaitSeconds) * 1000
