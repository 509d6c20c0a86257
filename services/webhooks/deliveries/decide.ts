import { type DecidedEvent, eventAbout } from '../../../infra/event-store/decide.ts'
import type { TrafficEvent } from '../../../infra/event-store/event.ts'
import { derivedId } from '../../../infra/ids.ts'
import type { RequestOutcome } from '../../../infra/safe-http/client.ts'
import type { DeliveryRow, WebhookEventRow } from '../../../projections/webhooks/tables.ts'
import {
  dataKeySubjects,
  type WebhookAttemptOutcome,
  type WebhookDeliveryAttempted,
} from '../../../schemas/events.ts'
import type { AttemptRequest, PostedAttempt } from './attempt.ts'

export interface RetryInput {
  outcome: RequestOutcome
  /** Attempts since the delivery was raised or last redelivered, including this one. */
  attemptsInRound: number
  now: number
  /** Retry schedule: the wait before each attempt of the round. */
  waitsSeconds: readonly number[]
  /** Random number from 0 to 1, for the jitter. */
  random: number
}

export interface AttemptResult {
  result: WebhookAttemptOutcome
  /** Epoch milliseconds; null unless the result is `retrying`. */
  nextAttemptAt: number | null
}

export const goneStatus = 410

const jitter = 0.2
// Minimum wait after a 429 or a timeout, which suggest that the receiver is overloaded.
const overloadSeconds = 60

/** Returns the result of an attempt and the time of the next one, by the retry schedule and Retry-After. */
export function attemptResult(input: RetryInput): AttemptResult {
  const { outcome, attemptsInRound, now, waitsSeconds } = input
  if (isSuccess(outcome)) return { result: 'succeeded', nextAttemptAt: null }
  const wait = waitsSeconds[attemptsInRound]
  const isGone = outcome.kind === 'response' && outcome.status === goneStatus
  if (isGone || wait === undefined) return { result: 'failed', nextAttemptAt: null }
  return { result: 'retrying', nextAttemptAt: now + Math.round(waitSeconds(wait, input) * 1000) }
}

// Applies 20% jitter, so that deliveries that failed together are not retried together. The minimum after an overload
// never exceeds the longest wait of the configured schedule. Retry-After can at most double the wait, so that a
// receiver can't postpone a delivery for years.
function waitSeconds(
  scheduled: number,
  { outcome, now, waitsSeconds, random }: RetryInput,
): number {
  const min = isOverload(outcome) ? Math.min(overloadSeconds, Math.max(...waitsSeconds)) : 0
  const jittered = Math.max(scheduled * (1 - jitter + 2 * jitter * random), min)
  const requested =
    outcome.kind === 'response' ? retryAfterSeconds(outcome.retryAfter, now) : undefined
  if (requested === undefined) return jittered
  return Math.max(jittered, Math.min(requested, 2 * Math.max(scheduled, min)))
}

function isOverload(outcome: RequestOutcome): boolean {
  return outcome.kind === 'response' ? outcome.status === 429 : outcome.reason === 'timeout'
}

// The three formats of an HTTP date (RFC 9110, section 5.6.7): IMF-fixdate, RFC 850, and asctime, which is in GMT.
const time = '\\d{2}:\\d{2}:\\d{2}'
const httpDates = [
  new RegExp(`^(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \\d{2} [A-Z][a-z]{2} \\d{4} ${time} GMT$`),
  new RegExp(`^(Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day, \\d{2}-[A-Z][a-z]{2}-\\d{2} ${time} GMT$`),
]
const asctime = new RegExp(`^(Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2} [ \\d]\\d ${time} \\d{4}$`)

/** Parses a Retry-After header. Returns undefined without a valid one. */
export function retryAfterSeconds(header: string | undefined, now: number): number | undefined {
  const text = header?.trim() ?? ''
  if (/^\d+$/.test(text)) return Number(text)
  const date = asctime.test(text) ? `${text} GMT` : text
  const isDate = date !== text || httpDates.some((format) => format.test(text))
  const at = isDate ? Date.parse(date) : Number.NaN
  return Number.isNaN(at) ? undefined : Math.max(0, (at - now) / 1000)
}

// A redirect is a failure, because following it would send the signed event to an unchecked address.
function isSuccess(outcome: RequestOutcome): boolean {
  return outcome.kind === 'response' && outcome.status >= 200 && outcome.status <= 299
}

export interface FinishedAttempt extends AttemptRequest, PostedAttempt, AttemptResult {
  deliveryId: string
  /** Starts at 1. */
  number: number
  /** Overrides the error of the outcome, for example if a 200 response has an unusable body. */
  error?: string | undefined
}

/** Returns the fields of a log message about an attempt. */
export function attemptLogFields({
  event,
  endpoint,
  deliveryId,
  number: attempt,
  result,
  outcome,
}: FinishedAttempt) {
  return {
    organization_id: event.organization_id,
    event_id: event.id,
    delivery_id: deliveryId,
    endpoint_id: endpoint.id,
    attempt,
    outcome: result,
    duration_ms: outcome.durationMs,
    ...(outcome.kind === 'response' ? { status: outcome.status } : { reason: outcome.reason }),
  }
}

export function attemptedEvent(attempt: FinishedAttempt): DecidedEvent<TrafficEvent> {
  const { event, endpoint, deliveryId, number, outcome, attemptedAt, result } = attempt
  const { organization_id, environment } = event
  const data: WebhookDeliveryAttempted = {
    event_id: event.id,
    delivery_id: deliveryId,
    organization_id,
    environment,
    endpoint_id: endpoint.id,
    attempt: number,
    attempted_at: attemptedAt,
    duration_ms: Math.round(outcome.durationMs),
    outcome: result,
    response_status: outcome.kind === 'response' ? outcome.status : null,
    response_body: storedBody(event, outcome),
    error: result === 'succeeded' ? null : (attempt.error ?? problemOf(outcome)),
    next_attempt_at: attempt.nextAttemptAt,
    session_subject_id: dataKeySubjects.WebhookEventRaised(event),
  }
  const eventId = derivedId(
    'evt',
    'webhook-attempt',
    deliveryId,
    String(number),
    String(attemptedAt),
  )
  return eventAbout(
    event,
    { type: 'WebhookDeliveryAttempted', data },
    { eventId, now: attemptedAt + data.duration_ms },
  )
}

function problemOf(outcome: RequestOutcome): string {
  return outcome.kind === 'response'
    ? `The receiver responded with ${outcome.status}.`
    : outcome.message
}

const maxStoredBytes = 4096

// Responses to approvals are not stored, because they may contain credentials.
function storedBody(event: WebhookEventRow, outcome: RequestOutcome): string | null {
  if (outcome.kind === 'failure' || event.type === 'gate.session.approved') return null
  return truncateUtf8(outcome.body, maxStoredBytes)
}

/** Returns the event that records a skipped delivery. Its id is derived from `occasion`, so each is recorded once. */
export function skippedEvent(
  delivery: Pick<
    DeliveryRow,
    'id' | 'event_id' | 'endpoint_id' | 'organization_id' | 'environment'
  >,
  { reason, occasion, now }: { reason: string; occasion: string; now: number },
): DecidedEvent<TrafficEvent> {
  const { id: delivery_id, event_id, endpoint_id, organization_id, environment } = delivery
  const data = {
    event_id,
    delivery_id,
    organization_id,
    environment,
    endpoint_id,
    reason,
    skipped_at: now,
  }
  const eventId = derivedId('evt', 'webhook-skipped', delivery_id, occasion)
  return eventAbout(delivery, { type: 'WebhookDeliverySkipped', data }, { eventId, now })
}

/**
 * Returns at most `maxBytes` bytes as UTF-8 text. U+0000, which PostgreSQL cannot store, and invalid UTF-8 become
 * U+FFFD.
 */
export function truncateUtf8(bytes: Uint8Array, maxBytes: number): string {
  // Cut twice, because replacing invalid UTF-8 lengthens the text.
  const text = cut(Buffer.from(bytes), maxBytes).toString('utf8').replaceAll('\0', '\uFFFD')
  return cut(Buffer.from(text), maxBytes).toString('utf8')
}

function cut(bytes: Buffer, max: number): Buffer {
  if (bytes.length <= max) return bytes
  let end = max
  // A UTF-8 character has at most three continuation bytes.
  while (end > max - 3 && isContinuation(bytes[end])) end--
  return bytes.subarray(0, isContinuation(bytes[end]) ? max : end)
}

const isContinuation = (byte: number | undefined): boolean =>
  byte !== undefined && (byte & 0xc0) === 0x80
