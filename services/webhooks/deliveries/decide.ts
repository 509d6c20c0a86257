import { type DecidedEvent, eventAbout } from '../../../infra/event-store/decide.ts'
import type { TrafficEvent } from '../../../infra/event-store/event.ts'
import { derivedId } from '../../../infra/ids.ts'
import type { PostOutcome } from '../../../infra/safe-http/client.ts'
import type { DeliveryRow, WebhookEventRow } from '../../../projections/webhooks/tables.ts'
import {
  dataKeySubjects,
  type WebhookAttemptOutcome,
  type WebhookDeliveryAttempted,
} from '../../../schemas/events.ts'
import type { AttemptOf, PostedAttempt } from './attempt.ts'

export interface EndedAttempt {
  outcome: PostOutcome
  /** Attempts since the delivery was raised or redelivered, this one included. */
  attemptsInRound: number
  now: number
  waitsSeconds: readonly number[]
  random: number
}

export interface AttemptResult {
  result: WebhookAttemptOutcome
  /** Epoch milliseconds; null unless the result is `retrying`. */
  nextAttemptAt: number | null
}

export const goneStatus = 410

const jitter = 0.2
// After a 429 or a time-out: the receiver has more than it can do.
const restSeconds = 60

export function attemptResult(made: EndedAttempt): AttemptResult {
  const { outcome, attemptsInRound, now, waitsSeconds } = made
  if (isSuccess(outcome)) return { result: 'succeeded', nextAttemptAt: null }
  const wait = waitsSeconds[attemptsInRound]
  const isGone = outcome.kind === 'response' && outcome.status === goneStatus
  if (isGone || wait === undefined) return { result: 'failed', nextAttemptAt: null }
  return { result: 'retrying', nextAttemptAt: now + Math.round(waitSeconds(wait, made) * 1000) }
}

// The schedule's wait, 20 % more or less, so that what failed together is not repeated together. A schedule shorter
// than a rest is the operator's wish, so nothing waits longer than its longest. Retry-After may lengthen the wait to
// twice the schedule's at most, or a receiver could have its deliveries stored for years.
function waitSeconds(
  scheduled: number,
  { outcome, now, waitsSeconds, random }: EndedAttempt,
): number {
  const rest = needsRest(outcome) ? Math.min(restSeconds, Math.max(...waitsSeconds)) : 0
  const jittered = Math.max(scheduled * (1 - jitter + 2 * jitter * random), rest)
  const requested =
    outcome.kind === 'response' ? retryAfterSeconds(outcome.retryAfter, now) : undefined
  if (requested === undefined) return jittered
  return Math.max(jittered, Math.min(requested, 2 * Math.max(scheduled, rest)))
}

function needsRest(outcome: PostOutcome): boolean {
  return outcome.kind === 'response' ? outcome.status === 429 : outcome.reason === 'timeout'
}

// The three forms that recipients take (RFC 9110, 5.6.7): IMF-fixdate, that of RFC 850, and that of asctime, which names
// no zone and means GMT.
const time = '\\d{2}:\\d{2}:\\d{2}'
const httpDates = [
  new RegExp(`^(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \\d{2} [A-Z][a-z]{2} \\d{4} ${time} GMT$`),
  new RegExp(`^(Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day, \\d{2}-[A-Z][a-z]{2}-\\d{2} ${time} GMT$`),
]
const asctime = new RegExp(`^(Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2} [ \\d]\\d ${time} \\d{4}$`)

export function retryAfterSeconds(header: string | undefined, now: number): number | undefined {
  const text = header?.trim() ?? ''
  if (/^\d+$/.test(text)) return Number(text)
  const date = asctime.test(text) ? `${text} GMT` : text
  const isDate = date !== text || httpDates.some((form) => form.test(text))
  const at = isDate ? Date.parse(date) : Number.NaN
  return Number.isNaN(at) ? undefined : Math.max(0, (at - now) / 1000)
}

// Only 2xx: a redirect would send the event, signed, to somebody whom nobody has checked.
function isSuccess(outcome: PostOutcome): boolean {
  return outcome.kind === 'response' && outcome.status >= 200 && outcome.status <= 299
}

/** An attempt that has ended. */
export interface MadeAttempt extends AttemptOf, PostedAttempt, AttemptResult {
  deliveryId: string
  attempt: number
  /** Replaces what the outcome says, as when an answer of 200 was of no use. */
  error?: string | undefined
}

/** What the log of the process says of it. */
export function attemptLine({
  event,
  endpoint,
  deliveryId,
  attempt,
  result,
  outcome,
}: MadeAttempt) {
  return {
    organizationId: event.organization_id,
    eventId: event.id,
    deliveryId,
    endpointId: endpoint.id,
    attempt,
    outcome: result,
    durationMs: outcome.durationMs,
    ...(outcome.kind === 'response' ? { status: outcome.status } : { reason: outcome.reason }),
  }
}

export function attemptedEvent(made: MadeAttempt): DecidedEvent<TrafficEvent> {
  const { event, endpoint, deliveryId, attempt, outcome, attemptedAt, result } = made
  const { organization_id, environment } = event
  const data: WebhookDeliveryAttempted = {
    event_id: event.id,
    delivery_id: deliveryId,
    organization_id,
    environment,
    endpoint_id: endpoint.id,
    attempt,
    attempted_at: attemptedAt,
    duration_ms: Math.round(outcome.durationMs),
    outcome: result,
    response_status: outcome.kind === 'response' ? outcome.status : null,
    response_body: storedBody(event, outcome),
    error: result === 'succeeded' ? null : (made.error ?? problemOf(outcome)),
    next_attempt_at: made.nextAttemptAt,
    session_subject_id: dataKeySubjects.WebhookEventRaised(event),
  }
  const eventId = derivedId(
    'evt',
    'webhook-attempt',
    deliveryId,
    String(attempt),
    String(attemptedAt),
  )
  return eventAbout(
    event,
    { type: 'WebhookDeliveryAttempted', data },
    { eventId, now: attemptedAt + data.duration_ms },
  )
}

function problemOf(outcome: PostOutcome): string {
  return outcome.kind === 'response' ? `The receiver answered ${outcome.status}.` : outcome.message
}

const maxStoredBytes = 4096

// The answer to an approval may be somebody's credentials.
function storedBody(event: WebhookEventRow, outcome: PostOutcome): string | null {
  if (outcome.kind === 'failure' || event.type === 'gate.session.approved') return null
  return cutText(outcome.body, maxStoredBytes)
}

/** `occasion`: a delivery is skipped once for each, and after a redelivery again. */
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

/** UTF-8 text of at most `maxBytes` bytes. What Postgres cannot store (U+0000) and what is not UTF-8 becomes U+FFFD. */
export function cutText(bytes: Uint8Array, maxBytes: number): string {
  // What is not UTF-8 becomes longer, so it is cut once more.
  const text = cut(Buffer.from(bytes), maxBytes).toString('utf8').replaceAll('\0', '\uFFFD')
  return cut(Buffer.from(text), maxBytes).toString('utf8')
}

function cut(bytes: Buffer, max: number): Buffer {
  if (bytes.length <= max) return bytes
  let end = max
  // A character has at most three bytes after its first.
  while (end > max - 3 && isContinuation(bytes[end])) end--
  return bytes.subarray(0, isContinuation(bytes[end]) ? max : end)
}

const isContinuation = (byte: number | undefined): boolean =>
  byte !== undefined && (byte & 0xc0) === 0x80
