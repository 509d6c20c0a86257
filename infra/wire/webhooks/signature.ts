import { createHmac, createSecretKey, timingSafeEqual } from 'node:crypto'
import type { Keyring } from '../../crypto/keyring.ts'
import { open, seal } from '../../crypto/sealing.ts'
import type { Random } from '../../ids.ts'
import { wire } from '../names.ts'

/** standardwebhooks.com, specification 1.0.0 */
export const standardHeaders = {
  id: 'webhook-id',
  timestamp: 'webhook-timestamp',
  signature: 'webhook-signature',
} as const

/**
 * Both forms of signature. `timestamp`: Unix seconds of the attempt. `secrets`: the live ones, newest first. The first
 * form is made with the newest only. The second has a signature for each, so that during a rotation a receiver verifies
 * with the old secret or the new.
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

interface Signed {
  timestamp: string
  body: string
  secret: string
}

// HMAC-SHA256 of `timestamp.body`; the key is the secret's text as issued.
function plainDigest({ timestamp, body, secret }: Signed): Buffer {
  return createHmac('sha256', secret).update(`${timestamp}.${body}`).digest()
}

// HMAC-SHA256 of `id.timestamp.body`; the key is what the secret is the base64 of.
function standardDigest({ id, timestamp, body, secret }: Signed & { id: string }): Buffer {
  const text = secret.startsWith(secretPrefix) ? secret.slice(secretPrefix.length) : secret
  // With bytes in place of a key object, Node takes three times as long.
  const key = createSecretKey(Buffer.from(text, 'base64'))
  return createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest()
}

const toleranceSeconds = 300

type Headers = Record<string, string | string[] | undefined>

interface Received {
  body: string
  secrets: string[]
  now: number
}

/**
 * Signed with one of `secrets` at most 300 seconds from `now` (epoch milliseconds). One form of signature is enough: who
 * can make either has the secret. Header names may have any case.
 */
export function verifySignature({
  headers,
  ...received
}: Received & { headers: Headers }): { valid: true } | { valid: false; problem: string } {
  const forms = [plainForm(headers), standardForm(headers)].filter((form) => form !== undefined)
  if (forms.length === 0) return { valid: false, problem: 'There are no signature headers.' }
  const problems = forms.map((form) => problemOf(form, received))
  if (problems.includes(undefined)) return { valid: true }
  return { valid: false, problem: problems.find((problem) => problem !== undefined) ?? '' }
}

interface Form {
  timestamp: string
  digests: Buffer[]
  digestWith(secret: string, body: string): Buffer
}

function plainForm(headers: Headers): Form | undefined {
  const timestamp = headerValue(headers, wire.webhookTimestampHeader)
  const signature = headerValue(headers, wire.webhookSignatureHeader)
  if (timestamp === undefined || signature === undefined) return undefined
  return {
    timestamp,
    digests: /^[0-9a-f]{64}$/.test(signature) ? [Buffer.from(signature, 'hex')] : [],
    digestWith: (secret, body) => plainDigest({ timestamp, body, secret }),
  }
}

function standardForm(headers: Headers): Form | undefined {
  const id = headerValue(headers, standardHeaders.id)
  const timestamp = headerValue(headers, standardHeaders.timestamp)
  const signature = headerValue(headers, standardHeaders.signature)
  if (id === undefined || timestamp === undefined || signature === undefined) return undefined
  const ours = signature.split(' ').filter((entry) => entry.startsWith('v1,'))
  return {
    timestamp,
    digests: ours.map((entry) => Buffer.from(entry.slice(3), 'base64')),
    digestWith: (secret, body) => standardDigest({ id, timestamp, body, secret }),
  }
}

function problemOf(form: Form, { body, secrets, now }: Received): string | undefined {
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
// Standard Webhooks requires 24 to 64; a multiple of three leaves no padding in base64.
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

/** Throws when none of our master keys opens it, or when it is another endpoint's. */
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

export function liveSecrets<S extends { expires_at: number | null }>(
  secrets: S[],
  now: number,
): S[] {
  return secrets.filter(({ expires_at }) => expires_at === null || expires_at > now)
}
