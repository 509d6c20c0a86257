import type { PostOutcome } from '../../../infra/safe-http/client.ts'
import type { WebhookAttemptOutcome } from '../../../schemas/events.ts'
import { isSuccess } from '../attempt.ts'

export interface AttemptMade {
  outcome: PostOutcome
  /** With this one, since the delivery was raised or redelivered. */
  attemptsInRound: number
  /** When it ended (epoch milliseconds). */
  now: number
  /** Seconds before each attempt; with as many failures the delivery has failed. */
  waitsSeconds: readonly number[]
  /** From 0 to 1. */
  random: number
}

export interface AttemptResult {
  result: WebhookAttemptOutcome
  /** Epoch milliseconds; null unless the result is `retrying`. */
  nextAttemptAt: number | null
}

/** Gone: the receiver asks to be sent nothing more. */
export const goneStatus = 410

const jitter = 0.2
/** After a 429 or a time-out: the receiver has more than it can do. */
const restSeconds = 60

/** What follows from an attempt. Pure. */
export function resultOf(made: AttemptMade): AttemptResult {
  const { outcome, attemptsInRound, now, waitsSeconds } = made
  if (isSuccess(outcome)) return { result: 'succeeded', nextAttemptAt: null }
  const wait = waitsSeconds[attemptsInRound]
  const isGone = outcome.kind === 'response' && outcome.status === goneStatus
  if (isGone || wait === undefined) return { result: 'failed', nextAttemptAt: null }
  return { result: 'retrying', nextAttemptAt: now + Math.round(waitSeconds(wait, made) * 1000) }
}

/**
 * The schedule's wait, 20 % more or less, so that what failed together is not repeated together. A schedule shorter
 * than a rest is the operator's wish, so nothing waits longer than its longest. Retry-After may lengthen the wait, at
 * most to twice the schedule's: a receiver cannot have its deliveries kept for years.
 */
function waitSeconds(scheduled: number, { outcome, now, waitsSeconds, random }: AttemptMade): number {
  const rest = needsRest(outcome) ? Math.min(restSeconds, Math.max(...waitsSeconds)) : 0
  const jittered = Math.max(scheduled * (1 - jitter + 2 * jitter * random), rest)
  const asked = outcome.kind === 'response' ? retryAfterSeconds(outcome.retryAfter, now) : undefined
  return asked === undefined ? jittered : Math.max(jittered, Math.min(asked, 2 * Math.max(scheduled, rest)))
}

function needsRest(outcome: PostOutcome): boolean {
  return outcome.kind === 'response' ? outcome.status === 429 : outcome.reason === 'timeout'
}

// An IMF-fixdate, the one form of a date that servers may send (RFC 9110, 5.6.7).
const httpDate = /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/

/** The seconds that a Retry-After header asks for: a number of them or a date; undefined when it is neither. */
export function retryAfterSeconds(header: string | undefined, now: number): number | undefined {
  const text = header?.trim() ?? ''
  if (/^\d+$/.test(text)) return Number(text)
  const at = httpDate.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(at) ? undefined : Math.max(0, (at - now) / 1000)
}
