import { createHmac, createSecretKey, timingSafeEqual } from 'node:crypto'
import type { Keyring } from '../../crypto/keyring.ts'
import { open, seal } from '../../crypto/sealing.ts'
import type { Random } from '../../ids.ts'
import { wireNames } from '../names.ts'

/** Headers of Standard Webhooks 1.0.0 (standardwebhooks.com). */
export const standardHeaders = {
  id: 'webhook-id',
  timestamp: 'webhook-timestamp',
  signature: 'webhook-signature',
} as const

/**
 * Returns the headers of both signature formats. `timestamp`: Unix seconds of the attempt. `secrets`: active secrets,
 * newest first. The plain format uses only the newest. Standard Webhooks has one signature per secret, so a receiver
 * can verify with either during a rotation.
 */
export function signatureHeaders(options: {
  eventId: string
  body: string
  timestamp: number
  secrets: string[]
}): Record<string, string> {
  const { eventId, body, timestamp, secrets } = options
  const [newest] = secrets
  if (newest === undefined) throw new Error('a delivery needs an active signing secret')
  const standard = secrets.map((secret) => {
    const digest = standardDigest({ id: eventId, timestamp: String(timestamp), body, secret })
    return `v1,${digest.toString('base64')}`
  })
  return {
    [wireNames.webhookTimestampHeader]: String(timestamp),
    [wireNames.webhookSignatureHeader]: plainDigest({
      timestamp: String(timestamp),
      body,
      secret: newest,
    }).toString('hex'),
    [standardHeaders.id]: eventId,
    [standardHeaders.timestamp]: String(timestamp),
    [standardHeaders.signature]: standard.join(' '),
  }
}

interface Signed {
  timestamp: string
  body: string
  secret: string
}

// Computes the plain format: HMAC-SHA256 of `timestamp.body`, keyed with the secret as issued.
function plainDigest({ timestamp, body, secret }: Signed): Buffer {
  return createHmac('sha256', secret).update(`${timestamp}.${body}`).digest()
}

// Computes the Standard Webhooks format: HMAC-SHA256 of `id.timestamp.body`, keyed with the base64-decoded secret.
function standardDigest({ id, timestamp, body, secret }: Signed & { id: string }): Buffer {
  const text = secret.startsWith(secretPrefix) ? secret.slice(secretPrefix.length) : secret
  // A key object is three times faster than bytes.
  const key = createSecretKey(Buffer.from(text, 'base64'))
  return createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest()
}

const toleranceSeconds = 300

type Headers = Record<string, string | string[] | undefined>

interface Webhook {
  body: string
  secrets: string[]
  now: number
}

/**
 * Verifies that the request was signed with one of `secrets` within 300 seconds of `now` (epoch milliseconds). One
 * valid format suffices, because each proves the secret. Header names may have any case.
 */
export function verifySignature({
  headers,
  ...received
}: Webhook & { headers: Headers }): { valid: true } | { valid: false; problem: string } {
  const forms = [plainFormat(headers), standardFormat(headers)].filter((form) => form !== undefined)
  if (forms.length === 0) return { valid: false, problem: 'There are no signature headers.' }
  const problems = forms.map((form) => problemOf(form, received))
  if (problems.includes(undefined)) return { valid: true }
  return { valid: false, problem: problems.find((problem) => problem !== undefined) ?? '' }
}

interface Signature {
  timestamp: string
  digests: Buffer[]
  digestWith(secret: string, body: string): Buffer
}

function plainFormat(headers: Headers): Signature | undefined {
  const timestamp = headerValue(headers, wireNames.webhookTimestampHeader)
  const signature = headerValue(headers, wireNames.webhookSignatureHeader)
  if (timestamp === undefined || signature === undefined) return undefined
  return {
    timestamp,
    digests: /^[0-9a-f]{64}$/.test(signature) ? [Buffer.from(signature, 'hex')] : [],
    digestWith: (secret, body) => plainDigest({ timestamp, body, secret }),
  }
}

function standardFormat(headers: Headers): Signature | undefined {
  const id = headerValue(headers, standardHeaders.id)
  const timestamp = headerValue(headers, standardHeaders.timestamp)
  const signature = headerValue(headers, standardHeaders.signature)
  if (id === undefined || timestamp === undefined || signature === undefined) return undefined
  const entries = signature.split(' ').filter((entry) => entry.startsWith('v1,'))
  return {
    timestamp,
    digests: entries.map((entry) => Buffer.from(entry.slice(3), 'base64')),
    digestWith: (secret, body) => standardDigest({ id, timestamp, body, secret }),
  }
}

function problemOf(form: Signature, { body, secrets, now }: Webhook): string | undefined {
  if (!/^\d{1,12}$/.test(form.timestamp)) return 'The timestamp is not a number of Unix seconds.'
  const matches = secrets.some((secret) => {
    const expected = form.digestWith(secret, body)
    return form.digests.some((digest) => isEqual(digest, expected))
  })
  if (!matches) return 'No signature matches: another secret, or a changed body or timestamp.'
  const age = now / 1000 - Number(form.timestamp)
  if (age > toleranceSeconds) return `The timestamp is ${Math.round(age)} seconds old.`
  if (age < -toleranceSeconds) return `The timestamp is ${Math.round(-age)} seconds in the future.`
  return undefined
}

function isEqual(digest: Buffer, expected: Buffer): boolean {
  return digest.length === expected.length && timingSafeEqual(digest, expected)
}

function headerValue(headers: Headers, header: string): string | undefined {
  const name = header.toLowerCase()
  const values = Object.entries(headers).flatMap(([key, value]) =>
    key.toLowerCase() === name && value !== undefined ? value : [],
  )
  return values.length === 1 ? values[0] : undefined
}

const purpose = 'webhook-signing-secret'
// Standard Webhooks requires 24 to 64 bytes; a multiple of three needs no base64 padding.
const secretBytes = 33

const secretPrefix = 'whsec_'

export function generateSigningSecret(random: Random): string {
  return secretPrefix + random(secretBytes).toString('base64')
}

export function isSigningSecret(text: string): boolean {
  if (!text.startsWith(secretPrefix)) return false
  const encoded = text.slice(secretPrefix.length)
  const bytes = Buffer.from(encoded, 'base64')
  return bytes.length === secretBytes && bytes.toString('base64') === encoded
}

export function sealSigningSecret(options: {
  keyring: Keyring
  random: Random
  secret: string
  endpointId: string
}): Buffer {
  const { keyring, random, secret, endpointId } = options
  return seal(Buffer.from(secret), { keyring, random, purpose, context: endpointId })
}

/** Decrypts a signing secret. Throws if no master key opens it, or if it belongs to another endpoint. */
export function openSigningSecret(options: {
  keyring: Keyring
  sealed: Buffer
  endpointId: string
}): string {
  const { keyring, sealed, endpointId } = options
  const secret = open(sealed, { keyring, purpose, context: endpointId })
  if (!secret) throw new Error(`no master key opens the signing secret of ${endpointId}`)
  return secret.toString()
}

/** Returns the secrets that have not expired. */
export function activeSecrets<S extends { expires_at: number | null }>(
  secrets: S[],
  now: number,
): S[] {
  return secrets.filter(({ expires_at }) => expires_at === null || expires_at > now)
}
