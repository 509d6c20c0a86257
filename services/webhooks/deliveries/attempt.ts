import type { Keyring } from '../../../infra/crypto/keyring.ts'
import type { Clock } from '../../../infra/ids.ts'
import { createLru } from '../../../infra/lru.ts'
import type { PostOutcome, WebhookClient } from '../../../infra/safe-http/client.ts'
import { webhookBody } from '../../../infra/wire/webhooks/events.ts'
import {
  liveSecrets,
  openSigningSecret,
  signatureHeaders,
} from '../../../infra/wire/webhooks/signature.ts'
import type { EndpointRow, WebhookEventRow } from '../../../projections/webhooks/tables.ts'

export interface AttemptDeps {
  client: Pick<WebhookClient, 'post'>
  secrets: ReturnType<typeof createSigningSecrets>
  clock: Clock
}

export interface AttemptOf {
  event: WebhookEventRow
  endpoint: EndpointRow
  timeoutMs?: number
  /** Called before the first byte is sent; where it returns false, the outcome is `dropped`. */
  mayBegin?: () => boolean
}

export interface PostedAttempt {
  attemptedAt: number
  outcome: PostOutcome
}

/** Posts the event once, signed with the live secrets. Rejects only when a secret cannot be opened; nothing is sent then. */
export async function makeAttempt(
  { client, secrets, clock }: AttemptDeps,
  { event, endpoint, timeoutMs, mayBegin }: AttemptOf,
): Promise<PostedAttempt> {
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
  const request = {
    url: endpoint.url,
    headers,
    body,
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    ...(mayBegin === undefined ? {} : { mayBegin }),
  }
  return { attemptedAt, outcome: await client.post(request) }
}

const maxRemembered = 10_000

/** Caches the secrets that were used last: opening one costs more than the signature itself. */
export function createSigningSecrets(keyring: Keyring) {
  const opened = createLru<string, string>(maxRemembered)
  return {
    open(endpointId: string, sealed: Buffer): string {
      const name = `${endpointId} ${sealed.toString('base64')}`
      const known = opened.get(name)
      if (known !== undefined) return known
      const secret = openSigningSecret({ keyring, sealed, endpointId })
      opened.set(name, secret)
      return secret
    },
  }
}
