import { randomBytes, randomInt, webcrypto } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { describe, expect, it, test } from 'vitest'
import { createKeyring } from '../../../../infra/crypto/keyring.ts'
import { webhookBody } from '../../../../infra/wire/webhooks/events.ts'
import {
  generateSigningSecret,
  isSigningSecret,
  liveSecrets,
  openSigningSecret,
  sealSigningSecret,
  signatureHeaders,
  verifySignature,
} from '../../../../infra/wire/webhooks/signature.ts'
import vector from '../../../fixtures/gate-delivery/webhook-signature.json' with { type: 'json' }

const now = Date.now()
const timestamp = Math.floor(now / 1000)
const eventId = 'evt_0123456789abcdefghjkmnpqrs'
const body = webhookBody({
  id: eventId,
  type: 'webhook.test',
  created_at: now,
  data: '{"text":"äöü 🦊"}',
})

const [oldSecret, newSecret, otherSecret] = [
  generateSigningSecret(randomBytes),
  generateSigningSecret(randomBytes),
  generateSigningSecret(randomBytes),
]
const headers = signatureHeaders({ eventId, body, timestamp, secrets: [newSecret, oldSecret] })

describe('the golden vector', () => {
  it('is what the first form makes', () => {
    const made = signatureHeaders({
      eventId,
      body: vector.raw_body,
      timestamp: Number(vector.timestamp),
      secrets: [vector.secret],
    })
    expect(made['X-Foil-Timestamp']).toBe(vector.timestamp)
    expect(made['X-Foil-Signature']).toBe(vector.signature)
  })

  const received = {
    body: vector.raw_body,
    secrets: [vector.secret],
    now: vector.now_seconds * 1000,
  }
  const plain = (time: string, signature: string) => ({
    'X-Foil-Timestamp': time,
    'X-Foil-Signature': signature,
  })

  it('verifies', () => {
    const result = verifySignature({
      ...received,
      headers: plain(vector.timestamp, vector.signature),
    })
    expect(result).toEqual({ valid: true })
  })

  it.each([
    ['an invalid signature', plain(vector.timestamp, vector.invalid_signature)],
    ['another time', plain(vector.expired_timestamp, vector.signature)],
    ['an upper-case signature', plain(vector.timestamp, vector.signature.toUpperCase())],
    ['two signatures', plain(vector.timestamp, `${vector.signature},${vector.signature}`)],
  ])('does not with %s', (_what, changed) => {
    expect(verifySignature({ ...received, headers: changed }).valid).toBe(false)
  })
})

describe('a delivery during a rotation', () => {
  it('has one hexadecimal signature, of the newest secret, in the first form', async () => {
    const key = await webcrypto.subtle.importKey(
      'raw',
      new TextEncoder().encode(newSecret),
      { name: 'HMAC', hash: 'SHA-256' },
      false,
      ['sign'],
    )
    const text = new TextEncoder().encode(`${headers['X-Foil-Timestamp']}.${body}`)
    const expected = Buffer.from(await webcrypto.subtle.sign('HMAC', key, text)).toString('hex')
    expect(headers['X-Foil-Signature']).toBe(expected)
  })

  it.each([
    ['new', newSecret],
    ['old', oldSecret],
  ])('verifies with the %s secret by the library standardwebhooks', (_which, secret) => {
    expect(new Webhook(secret).verify(body, headers)).toEqual(JSON.parse(body))
  })

  it.each([
    ['new', newSecret],
    ['old', oldSecret],
  ])('verifies with the %s secret by our own verifier', (_which, secret) => {
    expect(verifySignature({ headers, body, secrets: [secret], now })).toEqual({ valid: true })
  })

  it('does not verify with a secret that is neither', () => {
    expect(() => new Webhook(otherSecret).verify(body, headers)).toThrow('No matching signature')
    expect(verifySignature({ headers, body, secrets: [otherSecret], now }).valid).toBe(false)
  })

  it('verifies without one of the forms', () => {
    const only = (prefix: string) =>
      Object.fromEntries(Object.entries(headers).filter(([name]) => name.startsWith(prefix)))
    for (const some of [only('X-'), only('webhook-')]) {
      expect(verifySignature({ headers: some, body, secrets: [newSecret], now })).toEqual({
        valid: true,
      })
    }
  })

  it('is verified with header names in lower case and values in lists, as servers hand them on', () => {
    const listed = Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name.toLowerCase(), [value]]),
    )
    expect(verifySignature({ headers: listed, body, secrets: [newSecret], now })).toEqual({
      valid: true,
    })
  })
})

describe('what does not verify', () => {
  const verify = (changes: Record<string, string | string[] | undefined>, text = body) =>
    verifySignature({
      headers: { ...headers, ...changes },
      body: text,
      secrets: [newSecret, oldSecret],
      now,
    })

  test('a body changed anywhere', () => {
    const bytes = Buffer.from(body)
    const at = randomInt(bytes.length)
    bytes[at] = (bytes[at] ?? 0) ^ 1
    expect(verify({}, bytes.toString()), `byte ${at}`).toMatchObject({ valid: false })
    expect(() => new Webhook(newSecret).verify(bytes.toString(), headers)).toThrow()
  })

  test('another time or id', () => {
    const other = String(timestamp + 1)
    expect(verify({ 'X-Foil-Timestamp': other, 'webhook-timestamp': other }).valid).toBe(false)
    const id = { 'webhook-id': 'evt_other', 'X-Foil-Signature': undefined }
    expect(verify(id).valid).toBe(false)
  })

  test.each([
    [-301, 'future'],
    [301, 'old'],
  ])('a delivery that is %i seconds away', (seconds, word) => {
    const at = now + seconds * 1000
    const result = verifySignature({ headers, body, secrets: [newSecret], now: at })
    expect(result).toMatchObject({ valid: false, problem: expect.stringContaining(word) })
  })

  test.each([-298, 298])('but one that is %i seconds away does', (seconds) => {
    const at = now + seconds * 1000
    expect(verifySignature({ headers, body, secrets: [newSecret], now: at })).toEqual({
      valid: true,
    })
  })

  test.each([
    ['no headers', {}],
    ['half of each form', { 'X-Foil-Timestamp': '1', 'webhook-id': 'evt_1' }],
    ['a time that is no number', { 'X-Foil-Timestamp': '1e9', 'X-Foil-Signature': 'a'.repeat(64) }],
    ['empty signatures', { 'webhook-id': '1', 'webhook-timestamp': '1', 'webhook-signature': '' }],
    [
      'another version',
      { 'webhook-id': '1', 'webhook-timestamp': '1', 'webhook-signature': 'v2,aaaa' },
    ],
    [
      'a header that came twice',
      { 'X-Foil-Timestamp': ['1', '1'], 'X-Foil-Signature': 'a'.repeat(64) },
    ],
  ])('%s', (_what, few) => {
    const result = verifySignature({ headers: few, body, secrets: [newSecret], now })
    expect(result).toMatchObject({ valid: false, problem: expect.stringMatching(/\w/) })
  })
})

test('a delivery that nothing signs is not made', () => {
  expect(() => signatureHeaders({ eventId, body, timestamp, secrets: [] })).toThrow(
    'signing secret',
  )
})

test('the body carries the data byte for byte, in the order of the interface description', () => {
  const data = '{"b":1.0,  "a":"\\u00e4"}'
  const text = webhookBody({ id: 'evt_1', type: 'session.result.persisted', created_at: 0, data })
  expect(text).toBe(
    `{"id":"evt_1","object":"webhook_event","type":"session.result.persisted","created":"1970-01-01T00:00:00.000Z","data":${data}}`,
  )
})

describe('signing secrets', () => {
  const keyring = createKeyring(randomBytes(32).toString('base64'))

  it('are whsec_ and the base64 of 33 bytes, each another', () => {
    expect(newSecret).toMatch(/^whsec_[A-Za-z0-9+/]{44}$/)
    expect(newSecret).not.toBe(oldSecret)
  })

  it('are told from texts of another shape, such as a part of one', () => {
    expect(isSigningSecret(newSecret)).toBe(true)
    const others = [
      newSecret.slice(0, -1),
      newSecret.slice(0, -4),
      `${newSecret}AAAA`,
      newSecret.slice(6),
      `${newSecret} `,
    ]
    const notBase64 = `${newSecret.slice(0, -1)}-`
    expect([...others, notBase64, ''].filter(isSigningSecret)).toEqual([])
  })

  it('open under the keyring that sealed them, for their endpoint', () => {
    const sealed = sealSigningSecret({
      keyring,
      random: randomBytes,
      secret: newSecret,
      endpointId: 'we_1',
    })
    expect(sealed.includes(Buffer.from(newSecret))).toBe(false)
    expect(openSigningSecret({ keyring, sealed, endpointId: 'we_1' })).toBe(newSecret)
    expect(() => openSigningSecret({ keyring, sealed, endpointId: 'we_2' })).toThrow('we_2')
    const other = createKeyring(randomBytes(32).toString('base64'))
    expect(() => openSigningSecret({ keyring: other, sealed, endpointId: 'we_1' })).toThrow('we_1')
  })

  it('sign until the moment they expire', () => {
    const rows = [{ expires_at: null }, { expires_at: 11 }, { expires_at: 10 }, { expires_at: 9 }]
    expect(liveSecrets(rows, 10)).toEqual([{ expires_at: null }, { expires_at: 11 }])
  })
})
