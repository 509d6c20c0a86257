import type { Keyring } from '../../../infra/crypto/keyring.ts'
import type { Clock } from '../../../infra/ids.ts'
import { createLru } from '../../../infra/lru.ts'
import type { RequestOutcome, WebhookClient } from '../../../infra/safe-http/client.ts'
import { wireNames } from '../../../infra/wire/names.ts'
import { webhookBody } from '../../../infra/wire/webhooks/events.ts'
import {
  activeSecrets,
  openSigningSecret,
  signatureHeaders,
  standardHeaders,
} from '../../../infra/wire/webhooks/signature.ts'
import type { EndpointRow, WebhookEventRow } from '../../../projections/webhooks/tables.ts'

export interface AttemptDeps {
  client: Pick<WebhookClient, 'post'>
  secrets: ReturnType<typeof createSigningSecrets>
  clock: Clock
}

export interface AttemptRequest {
  event: WebhookEventRow
  endpoint: EndpointRow
  timeoutMs?: number
  /** Called right before the request is sent. If it returns false, nothing is sent and the outcome is `dropped`. */
  canSend?: () => boolean
}

export interface PostedAttempt {
  attemptedAt: number
  outcome: RequestOutcome
}

/** Posts the event once, signed with the active secrets. Rejects, without sending, if a secret cannot be decrypted. */
export async function makeAttempt(
  { client, secrets, clock }: AttemptDeps,
  { event, endpoint, timeoutMs, canSend }: AttemptRequest,
): Promise<PostedAttempt> {
  const attemptedAt = clock()
  const body = webhookBody(event)
  const signatures = signatureHeaders({
    eventId: event.id,
    body,
    timestamp: Math.floor(attemptedAt / 1000),
    secrets: activeSecrets(endpoint.secrets, attemptedAt).map(({ sealed }) =>
      secrets.open(endpoint.id, sealed),
    ),
  })
  const headers = { ...unsignedHeaders(event.id, attemptedAt), ...signatures }
  const request = {
    url: endpoint.url,
    headers,
    body,
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    ...(canSend === undefined ? {} : { canSend }),
  }
  return { attemptedAt, outcome: await client.post(request) }
}

/** Returns the headers of an attempt without its signatures. */
export function unsignedHeaders(eventId: string, attemptedAt: number): Record<string, string> {
  const timestamp = String(Math.floor(attemptedAt / 1000))
  return {
    'content-type': 'application/json',
    'user-agent': 'Tidegate-Webhooks/1',
    'Idempotency-Key': eventId,
    [standardHeaders.id]: eventId,
    [standardHeaders.timestamp]: timestamp,
    [wireNames.webhookTimestampHeader]: timestamp,
  }
}

const maxCachedSecrets = 10_000

/** Decrypts signing secrets. Caches them, because decryption costs more than the signature itself. */
export function createSigningSecrets(keyring: Keyring) {
  const cache = createLru<string, string>(maxCachedSecrets)
  return {
    open(endpointId: string, sealed: Buffer): string {
      const key = `${endpointId} ${sealed.toString('base64')}`
      const cached = cache.get(key)
      if (cached !== undefined) return cached
      const secret = openSigningSecret({ keyring, sealed, endpointId })
      cache.set(key, secret)
      return secret
    },
  }
}
