import { createCipheriv, createHash, randomBytes } from 'node:crypto'
import { deflateSync } from 'node:zlib'
import { secretHashOf } from '../../../../infra/crypto/api-keys.ts'
import { sealToken } from '../../../../infra/wire/sealed-token.ts'
import {
  generateSigningSecret,
  signatureHeaders,
} from '../../../../infra/wire/webhooks/signature.ts'
import vector1 from '../../../fixtures/sealed-token/vector.v1.json' with { type: 'json' }
import vector2 from '../../../fixtures/sealed-token/vector.v2.json' with { type: 'json' }

/** Arguments for both server SDKs, and the expected result. Times are epoch milliseconds. */
export interface TokenCase {
  name: string
  token: unknown
  secretKey: string
  maxAge?: number
  /** null: a binding that the caller lost. */
  binding?: string | null
  now: number
  /** The reason of a failure, or the id of the decision. */
  expected: string
}

const now = Date.parse('2026-11-30T12:00:00.000Z')
const secretKey = 'sk_live_one'
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')

interface Sealing {
  at?: number
  binding?: string | null
  decision?: object | null
}

function sealed({
  at = now,
  binding = null,
  decision = { event_id: 'evt_1', evaluated_at: new Date(at).toISOString() },
}: Sealing = {}) {
  const hand_off = { challenge_answered: true, input_observed: true, binding }
  const secretHashes = [secretKey, 'sk_live_two'].map(secretHashOf)
  return sealToken({
    payload: { decision, hand_off, text: 'Grüße \u{1F98A}' },
    secretHashes,
    random: randomBytes,
  })
}

// Uses version 1, which has no length field.
function decompressionBomb(): string {
  const key = createHash('sha256')
    .update(`${sha256(secretKey)}\0sealed-results`)
    .digest()
  const nonce = randomBytes(12)
  const cipher = createCipheriv('aes-256-gcm', key, nonce)
  const content = deflateSync(`"${'a'.repeat(5 * 1024 * 1024)}"`)
  const parts = [
    Buffer.from([1]),
    nonce,
    cipher.update(content),
    cipher.final(),
    cipher.getAuthTag(),
  ]
  return Buffer.concat(parts).toString('base64')
}

export function tokenCases(): TokenCase[] {
  const good = sealed()
  const bytes = Buffer.from(good, 'base64')
  const base = { secretKey, now }
  const changed = (at: number) => {
    const copy = Buffer.from(bytes)
    copy[at] = (copy[at] ?? 0) ^ 1
    return copy.toString('base64')
  }
  // The last 92 bytes are the second recipient. The first key authenticates its id, and ignores the other 60 bytes.
  const tampered = Array.from({ length: bytes.length - 60 }, (_, at) => ({
    ...base,
    name: `byte ${at} changed`,
    token: changed(at),
    expected: 'unreadable',
  }))
  const unreadable: [string, unknown][] = [
    ['truncated', bytes.subarray(0, -1).toString('base64')],
    ['longer', Buffer.concat([bytes, Buffer.alloc(3)]).toString('base64')],
    ['without recipients', bytes.subarray(0, -184).toString('base64')],
    ['one byte', 'Ag=='],
    ['not base64', 'no token!'],
    ['not a string', { token: good }],
    ['without a decision', sealed({ decision: null })],
    ['with an invalid time', sealed({ decision: { event_id: 'evt_1', evaluated_at: 'soon' } })],
    ['a decompression bomb', decompressionBomb()],
  ]
  const vectorAt = Date.parse(vector2.payload.decision.evaluated_at)
  const vectorId = vector2.payload.decision.event_id
  return [
    { ...base, name: 'a fresh token', token: good, expected: 'evt_1' },
    {
      ...base,
      name: 'sealed to several keys, opened with the second',
      token: good,
      secretKey: 'sk_live_two',
      expected: 'evt_1',
    },
    {
      ...base,
      name: 'not sealed to the key',
      token: good,
      secretKey: 'sk_live_three',
      expected: 'unreadable',
    },
    ...vector2.secretKeys.map((key) => ({
      name: `vector 2, ${key}`,
      token: vector2.token,
      secretKey: key,
      now: vectorAt,
      expected: vectorId,
    })),
    {
      name: 'vector 1',
      token: vector1.token,
      secretKey: vector1.secretKey,
      now: vectorAt,
      expected: vector1.payload.decision.event_id,
    },
    ...[undefined, null, ''].map((token) => ({
      ...base,
      name: `${token} as token`,
      token,
      expected: 'missing',
    })),
    ...unreadable.map(([name, token]) => ({ ...base, name, token, expected: 'unreadable' })),
    ...tampered,
    {
      ...base,
      name: 'exactly five minutes old',
      token: sealed({ at: now - 300_000 }),
      expected: 'evt_1',
    },
    {
      ...base,
      name: 'older than five minutes',
      token: sealed({ at: now - 300_001 }),
      expected: 'expired',
    },
    { ...base, name: 'from the future', token: sealed({ at: now + 300_001 }), expected: 'expired' },
    {
      ...base,
      name: 'old, but allowed',
      token: sealed({ at: now - 3_600_000 }),
      maxAge: 3600,
      expected: 'evt_1',
    },
    {
      ...base,
      name: 'too old by half a second',
      token: sealed({ at: now - 500 }),
      maxAge: 0.4,
      expected: 'expired',
    },
    {
      ...base,
      name: 'with the expected binding',
      token: sealed({ binding: sha256('form 1') }),
      binding: 'form 1',
      expected: 'evt_1',
    },
    {
      ...base,
      name: 'with another binding',
      token: sealed({ binding: sha256('form 2') }),
      binding: 'form 1',
      expected: 'wrong_binding',
    },
    {
      ...base,
      name: 'without a binding',
      token: good,
      binding: 'form 1',
      expected: 'wrong_binding',
    },
    {
      ...base,
      name: 'for a caller that has lost its binding',
      token: sealed({ binding: sha256('form 2') }),
      binding: null,
      expected: 'wrong_binding',
    },
    {
      ...base,
      name: 'with the binding of an empty text, for a caller with an empty binding',
      token: sealed({ binding: sha256('') }),
      binding: '',
      expected: 'wrong_binding',
    },
    {
      ...base,
      name: 'with a binding, for a caller that does not check it',
      token: sealed({ binding: sha256('form 2') }),
      expected: 'evt_1',
    },
  ]
}

export interface WebhookCase {
  name: string
  body: string
  headers: Record<string, string>
  secrets: string[]
  now: number
  isGenuine: boolean
}

/** Returns webhook deliveries. The first one is genuine. */
export function webhookCases(): [WebhookCase, ...WebhookCase[]] {
  const [secret, older, foreign] = [1, 2, 3].map(() => generateSigningSecret(randomBytes))
  if (!secret || !older || !foreign) throw new Error('no secrets')
  const body = JSON.stringify({ id: 'evt_1', type: 'webhook.test', text: 'Grüße' })
  const timestamp = Math.floor(now / 1000)
  const headers = signatureHeaders({ eventId: 'evt_1', body, timestamp, secrets: [secret] })
  const during = signatureHeaders({ eventId: 'evt_1', body, timestamp, secrets: [secret, older] })
  const upper = Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name.toUpperCase(), value]),
  )
  const without = (name: string) =>
    Object.fromEntries(Object.entries(headers).filter(([key]) => key !== name))
  const genuine = { body, headers, secrets: [secret], now, isGenuine: true }
  const forged = { ...genuine, isGenuine: false }
  return [
    { ...genuine, name: 'as sent' },
    { ...genuine, name: 'header names in capitals', headers: upper },
    { ...genuine, name: 'a receiver with old and new secret', secrets: [older, secret] },
    {
      ...genuine,
      name: 'a receiver with the old secret during a rotation',
      headers: during,
      secrets: [older],
    },
    { ...genuine, name: '300 s late', now: now + 300_000 },
    { ...forged, name: '302 s late', now: now + 302_000 },
    { ...forged, name: '302 s early', now: now - 302_000 },
    { ...forged, name: 'another secret', secrets: [foreign] },
    { ...forged, name: 'another body', body: `${body} ` },
    { ...forged, name: 'another id', headers: { ...headers, 'webhook-id': 'evt_2' } },
    {
      ...forged,
      name: 'a timestamp with a sign',
      headers: { ...headers, 'webhook-timestamp': `+${timestamp}` },
    },
    ...['webhook-id', 'webhook-timestamp', 'webhook-signature'].map((name) => ({
      ...forged,
      name: `without ${name}`,
      headers: without(name),
    })),
    {
      ...forged,
      name: 'an empty signature',
      headers: { ...headers, 'webhook-signature': 'v1, v1,%%% v2,abc' },
    },
  ]
}
