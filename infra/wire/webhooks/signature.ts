import { createHmac, createSecretKey } from 'node:crypto'
import { wire } from '../names.ts'
import { secretPrefix } from './secret.ts'

/** Names of the second form of signature. standardwebhooks.com, specification 1.0.0 */
export const standardHeaders = {
  id: 'webhook-id',
  timestamp: 'webhook-timestamp',
  signature: 'webhook-signature',
} as const

/**
 * The headers that prove a delivery ours, in both forms. `timestamp`: Unix seconds of the attempt. `secrets`: those
 * that are live, newest first; the first form has room for the newest alone, the second names a signature for each,
 * so that a receiver verifies with the old secret or the new during a rotation.
 */
export function signatureHeaders(options: {
  eventId: string
  body: string
  timestamp: number
  secrets: string[]
}): Record<string, string> {
  const { eventId, body, timestamp, secrets } = options
  const [newest] = secrets
  if (newest === undefined) throw new Error('a delivery needs a live signing secret')
  const standard = secrets.map((secret) => {
    const digest = standardDigest({ id: eventId, timestamp: String(timestamp), body, secret })
    return `v1,${digest.toString('base64')}`
  })
  return {
    [wire.webhookTimestampHeader]: String(timestamp),
    [wire.webhookSignatureHeader]: plainDigest({
      timestamp: String(timestamp),
      body,
      secret: newest,
    }).toString('hex'),
    [standardHeaders.id]: eventId,
    [standardHeaders.timestamp]: String(timestamp),
    [standardHeaders.signature]: standard.join(' '),
  }
}

export interface Signed {
  /** As in the header. */
  timestamp: string
  body: string
  secret: string
}

/** HMAC-SHA256 of `timestamp.body`; the key is the secret's text as issued. */
export function plainDigest({ timestamp, body, secret }: Signed): Buffer {
  return createHmac('sha256', secret).update(`${timestamp}.${body}`).digest()
}

/** HMAC-SHA256 of `id.timestamp.body`; the key is what the secret is the base64 of. */
export function standardDigest({ id, timestamp, body, secret }: Signed & { id: string }): Buffer {
  const text = secret.startsWith(secretPrefix) ? secret.slice(secretPrefix.length) : secret
  // Given as bytes, Node takes three times as long.
  const key = createSecretKey(Buffer.from(text, 'base64'))
  return createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest()
}
