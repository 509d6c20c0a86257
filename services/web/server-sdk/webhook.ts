import type {
  GateSessionApprovedWebhookEvent,
  KeyExpiringWebhookEvent,
  SessionFingerprintCalculatedWebhookEvent,
  SessionResultPersistedWebhookEvent,
  WebhookTestWebhookEvent,
} from './api.ts'
import { base64Bytes } from './base64.ts'

/** A webhook event, by `type`. Later versions of Tidegate may add types. */
export type WebhookEvent =
  | SessionFingerprintCalculatedWebhookEvent
  | SessionResultPersistedWebhookEvent
  | GateSessionApprovedWebhookEvent
  | KeyExpiringWebhookEvent
  | WebhookTestWebhookEvent

/** The delivery is not signed with the secret, is too old, or was modified. Respond with 401. */
export class WebhookError extends Error {
  override name = 'WebhookError'
}

// Tolerance of Standard Webhooks (standardwebhooks.com).
const toleranceSeconds = 300

type HeaderSource = Headers | Record<string, string | string[] | undefined>

/**
 * Verifies a webhook delivery and returns its event. Rejects with `WebhookError`. `body` is the raw request body,
 * because re-serialized JSON has different bytes. `secret` is `whsec_…`, or during a rotation a list of both.
 */
export async function verifyWebhook(
  body: string | Uint8Array,
  headers: HeaderSource,
  secret: string | readonly string[],
  { now = Date.now() }: { now?: number } = {},
): Promise<WebhookEvent> {
  if (typeof body !== 'string' && !(body instanceof Uint8Array))
    throw new TypeError('verifyWebhook needs the raw body, as text or bytes, not a parsed object')
  const [id, timestamp, signatures] = ['id', 'timestamp', 'signature'].map((name) =>
    headerOf(headers, `webhook-${name}`),
  )
  if (!id || !timestamp || !signatures)
    throw new WebhookError(
      'a header is missing: webhook-id, webhook-timestamp or webhook-signature',
    )
  const age = now / 1000 - Number(timestamp)
  if (!/^\d{1,12}$/.test(timestamp) || !(Math.abs(age) <= toleranceSeconds))
    throw new WebhookError(
      `webhook-timestamp is ${Math.round(age)} s old, more than ${toleranceSeconds}`,
    )

  const text = typeof body === 'string' ? body : new TextDecoder().decode(body)
  const prefix = new TextEncoder().encode(`${id}.${timestamp}.`)
  const signed = new Blob([prefix, typeof body === 'string' ? body : new Uint8Array(body)])
  const content = await signed.arrayBuffer()
  for (const candidate of [secret].flat())
    if (await isSigned(content, signatures, candidate)) return JSON.parse(text)
  throw new WebhookError('no signature matches: the secret is different, or the body was modified')
}

async function isSigned(
  content: ArrayBuffer,
  signatures: string,
  secret: string,
): Promise<boolean> {
  const bytes = base64Bytes(secret.replace(/^whsec_/, ''))
  if (!bytes || bytes.length === 0) throw new TypeError('secret must be whsec_ and base64')
  const hmac = { name: 'HMAC', hash: 'SHA-256' }
  const key = await crypto.subtle.importKey('raw', bytes, hmac, false, ['verify'])
  for (const entry of signatures.split(' ')) {
    const signature = entry.startsWith('v1,') ? base64Bytes(entry.slice(3)) : undefined
    // `verify` compares in constant time.
    if (signature && (await crypto.subtle.verify('HMAC', key, signature, content))) return true
  }
  return false
}

// Not `instanceof`, because libraries have their own Headers classes.
const isHeaders = (headers: HeaderSource): headers is Headers => typeof headers.get === 'function'

function headerOf(headers: HeaderSource, name: string): string | undefined {
  if (isHeaders(headers)) return headers.get(name) ?? undefined
  const value = Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1]
  return Array.isArray(value) ? value[0] : value
}
