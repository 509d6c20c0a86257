import type { Environment } from '../../../schemas/events.ts'
import type { DecisionId } from '../../ids.ts'
import type { SubscribableType } from './events.ts'

/** The event whose sender needs the receiver's answer, of which nothing is ever stored. */
export const directType = 'gate.session.approved' satisfies SubscribableType

export interface DirectEvent {
  type: typeof directType
  organizationId: string
  environment: Environment
  /** The one endpoint that is told. */
  endpointId: string
  /** What it is about: it has one event of the type, ever. */
  subject: { type: string; id: string }
  /** The payload's `data`, fit for JSON. Every attempt sends the same bytes. */
  data: object
  /** Epoch milliseconds. */
  createdAt: number
}

/** Which delivery. */
export interface DirectDelivery {
  eventId: string
  endpointId: string
}

export interface DirectResponse {
  status: number
  /** At most 64 KiB; the rest was not read. */
  body: Buffer
}

/**
 * What a response is worth. `problem` says to the endpoint's owner what is wrong with it; it is stored, so it must not
 * quote the response.
 */
export type Judgement = { kind: 'accepted' } | { kind: 'retry' | 'refuse'; problem: string }

export interface DirectAttempt extends DirectDelivery {
  /** 1 for the first. To make one again after a crash, under the same number, records it once. */
  attempt: number
  timeoutMs: number
  /** No other follows, whatever the receiver says. */
  isLast: boolean
  /** Must not throw. */
  judge(response: DirectResponse): Judgement
}

/** Why nothing was sent. `ended`: the delivery has failed or was given up; one that succeeded can be made again. */
export type DirectRefusal =
  | 'not_raised'
  | 'ended'
  | 'organization_inactive'
  | 'endpoint_unknown'
  | 'endpoint_disabled'
  | 'endpoint_not_subscribed'

export type DirectAnswer =
  | { kind: 'accepted'; response: DirectResponse }
  /** Another attempt may be made. */
  | { kind: 'retry'; problem: string }
  /** The delivery has failed: the response was refused, or this was the last attempt. */
  | { kind: 'failed'; problem: string }
  | { kind: 'not_sent'; reason: DirectRefusal }

/** Deliveries whose sender makes the calls itself and waits for the answers; the queue leaves them alone. */
export interface DirectCalls {
  /**
   * Writes down that the event happened, and returns its id; readable when it resolves. Raised again it stays as it
   * was at first, its endpoint too. Rejects with ApiError service.unavailable.
   */
  raise(event: DirectEvent): Promise<DecisionId>
  /**
   * Calls the receiver once and writes down what became of it. Rejects with LogUnavailable when that could not be
   * written, and when a signing secret cannot be opened: the attempt is then to be made again, under its number.
   */
  attempt(attempt: DirectAttempt): Promise<DirectAnswer>
  /** No attempt follows, though the last one did not say so; `reason` in words for the endpoint's owner. */
  giveUp(delivery: DirectDelivery, reason: string): Promise<void>
}

// open-points.md 37
const waitsSeconds = [0, 1, 2, 4, 8, 15, 30]
const longestWaitSeconds = 60

export interface DirectSchedule {
  /** How many were made. */
  attempts: number
  /** When the last of them ended, or when the event was raised. Times are epoch milliseconds. */
  since: number
  /** All attempts end before it. */
  deadline: number
  timeoutMs: number
}

/**
 * When the next attempt begins; undefined when there is no time left for one. It is the last if, should it time out,
 * no other could follow.
 */
export function nextDirectAttempt(schedule: DirectSchedule): { at: number; isLast: boolean } | undefined {
  const { attempts, since, deadline, timeoutMs } = schedule
  const at = since + waitMs(attempts)
  const latestEnd = at + timeoutMs
  if (latestEnd > deadline) return undefined
  return { at, isLast: latestEnd + waitMs(attempts + 1) + timeoutMs > deadline }
}

const waitMs = (attempts: number): number => (waitsSeconds[attempts] ?? longestWaitSeconds) * 1000
