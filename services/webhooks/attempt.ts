import { type DecidedEvent, decidedEvent } from '../../infra/event-store/decide.ts'
import { type Clock, derivedId } from '../../infra/ids.ts'
import type { PostOutcome, WebhookClient } from '../../infra/safe-http/client.ts'
import { webhookBody } from '../../infra/wire/webhooks/events.ts'
import { liveSecrets, signatureHeaders } from '../../infra/wire/webhooks/signature.ts'
import type { EndpointRow, WebhookEventRow } from '../../projections/webhooks/tables.ts'
import type { WebhookAttemptOutcome, WebhookDeliveryAttempted } from '../../schemas/events.ts'
import type { SigningSecrets } from './signing-secrets.ts'
import { cutText } from './stored-text.ts'

export interface AttemptDeps {
  client: Pick<WebhookClient, 'post'>
  secrets: SigningSecrets
  clock: Clock
}

/** What an attempt is about. */
export interface AttemptOf {
  event: WebhookEventRow
  endpoint: EndpointRow
  /** Default: the client's. */
  timeoutMs?: number
}

/** What an attempt met. */
export interface Answer {
  /** When the request began (epoch milliseconds). */
  attemptedAt: number
  outcome: PostOutcome
}

/**
 * Posts the event to the endpoint once, signed with the secrets that are live now. Rejects only when a secret cannot
 * be opened, before anything is sent.
 */
export async function attempt(
  { client, secrets, clock }: AttemptDeps,
  { event, endpoint, timeoutMs }: AttemptOf,
): Promise<Answer> {
  const attemptedAt = clock()
  const body = webhookBody(event)
  const signed = signatureHeaders({
    eventId: event.id,
    body,
    timestamp: Math.floor(attemptedAt / 1000),
    secrets: liveSecrets(endpoint.secrets, attemptedAt).map(({ sealed }) =>
      secrets.open(endpoint.id, sealed),
    ),
  })
  const headers = {
    'content-type': 'application/json',
    'user-agent': 'Tidegate-Webhooks/1',
    'Idempotency-Key': event.id,
    ...signed,
  }
  const request = { url: endpoint.url, headers, body, ...(timeoutMs === undefined ? {} : { timeoutMs }) }
  return { attemptedAt, outcome: await client.post(request) }
}

/** Only 2xx: a redirect would send the event, signed, to somebody whom nobody has checked. */
export function isSuccess(outcome: PostOutcome): boolean {
  return outcome.kind === 'response' && outcome.status >= 200 && outcome.status <= 299
}

export interface AttemptRecord extends AttemptOf, Answer {
  deliveryId: string
  /** 1 for the first of the delivery. */
  attempt: number
  result: WebhookAttemptOutcome
  /** null unless the result is `retrying`. */
  nextAttemptAt: number | null
  /** Instead of what the outcome says, as when an answer of 200 was of no use. */
  error?: string
}

/** The event that says what became of the attempt; to append it again changes nothing. */
export function attempted(record: AttemptRecord): DecidedEvent {
  const { event, endpoint, deliveryId, outcome, attemptedAt, result } = record
  const { organization_id, environment } = event
  const data: WebhookDeliveryAttempted = {
    event_id: event.id,
    delivery_id: deliveryId,
    organization_id,
    environment,
    endpoint_id: endpoint.id,
    attempt: record.attempt,
    attempted_at: attemptedAt,
    duration_ms: Math.round(outcome.durationMs),
    outcome: result,
    response_status: outcome.kind === 'response' ? outcome.status : null,
    response_body: storedBody(event, outcome),
    error: result === 'succeeded' ? null : (record.error ?? problemOf(outcome)),
    next_attempt_at: record.nextAttemptAt,
  }
  const eventId = derivedId('evt', 'webhook-attempt', deliveryId, String(record.attempt), String(attemptedAt))
  const now = attemptedAt + data.duration_ms
  const about = { organizationId: organization_id, environment, eventId, now }
  return decidedEvent({ type: 'WebhookDeliveryAttempted', data }, about)
}

function problemOf(outcome: PostOutcome): string {
  return outcome.kind === 'response' ? `The receiver answered ${outcome.status}.` : outcome.message
}

const maxStoredBytes = 4096

/** What a receiver answers to an approval may be somebody's credentials. */
function storedBody(event: WebhookEventRow, outcome: PostOutcome): string | null {
  if (outcome.kind === 'failure' || event.type === 'gate.session.approved') return null
  return cutText(outcome.body, maxStoredBytes)
}
