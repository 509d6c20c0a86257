import { randomBytes, randomInt, webcrypto } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { describe, expect, it, test } from 'vitest'
import { createKeyring } from '../../../../infra/crypto/keyring.ts'
import { webhookBody } from '../../../../infra/wire/webhooks/events.ts'
import {
  activeSecrets,
  generateSigningSecret,
  isSigningSecret,
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
  it('matches the plain format', () => {
    const signed = signatureHeaders({
      eventId,
      body: vector.raw_body,
      timestamp: Number(vector.timestamp),
      secrets: [vector.secret],
    })
    expect(signed['X-Foil-Timestamp']).toBe(vector.timestamp)
    expect(signed['X-Foil-Signature']).toBe(vector.signature)
  })

  const verify = (time: string, signature: string) =>
    verifySignature({
      headers: { 'X-Foil-Timestamp': time, 'X-Foil-Signature': signature },
      body: vector.raw_body,
      secrets: [vector.secret],
      now: vector.now_seconds * 1000,
    })

  it('verifies', () => {
    expect(verify(vector.timestamp, vector.signature)).toEqual({ valid: true })
  })

  it.each([
    ['an invalid signature', vector.timestamp, vector.invalid_signature],
    ['a different time', vector.expired_timestamp, vector.signature],
    ['an upper-case signature', vector.timestamp, vector.signature.toUpperCase()],
    ['two signatures', vector.timestamp, `${vector.signature},${vector.signature}`],
  ])('does not verify with %s', (_what, time, signature) => {
    expect(verify(time, signature).valid).toBe(false)
  })
})

describe('a delivery during a rotation', () => {
  it('has one hexadecimal signature in the plain format, by the newest secret', async () => {
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
  ])('verifies with the %s secret, here and in the library standardwebhooks', (_, secret) => {
    expect(verifySignature({ headers, body, secrets: [secret], now })).toEqual({ valid: true })
    expect(new Webhook(secret).verify(body, headers)).toEqual(JSON.parse(body))
  })

  it('does not verify with another secret', () => {
    expect(() => new Webhook(otherSecret).verify(body, headers)).toThrow('No matching signature')
    expect(verifySignature({ headers, body, secrets: [otherSecret], now }).valid).toBe(false)
  })

  it('verifies with either format, lower-case names and lists of values', () => {
    const entries = Object.entries(headers)
    const only = (prefix: string) => entries.filter(([name]) => name.startsWith(prefix))
    const listed = entries.map(([name, value]) => [name.toLowerCase(), [value]])
    for (const some of [only('X-'), only('webhook-'), listed]) {
      const given = { headers: Object.fromEntries(some), body, secrets: [newSecret], now }
      expect(verifySignature(given)).toEqual({ valid: true })
    }
  })
})

describe('verification fails for', () => {
  const verify = (changes: Record<string, string | string[] | undefined>, text = body) =>
    verifySignature({
      headers: { ...headers, ...changes },
      body: text,
      secrets: [newSecret, oldSecret],
      now,
    })

  test('a changed body', () => {
    const bytes = Buffer.from(body)
    const at = randomInt(bytes.length)
    bytes[at] = (bytes[at] ?? 0) ^ 1
    expect(verify({}, bytes.toString()), `byte ${at}`).toMatchObject({ valid: false })
    expect(() => new Webhook(newSecret).verify(bytes.toString(), headers)).toThrow()
  })

  test('a changed time or id', () => {
    const other = String(timestamp + 1)
    expect(verify({ 'X-Foil-Timestamp': other, 'webhook-timestamp': other }).valid).toBe(false)
    const id = { 'webhook-id': 'evt_other', 'X-Foil-Signature': undefined }
    expect(verify(id).valid).toBe(false)
  })

  test.each([
    [-301, 'future'],
    [-298, undefined],
    [298, undefined],
    [301, 'old'],
  ])('a delivery that is %i seconds away: %s', (seconds, word) => {
    const at = now + seconds * 1000
    const result = verifySignature({ headers, body, secrets: [newSecret], now: at })
    const invalid = { valid: false, problem: expect.stringContaining(word ?? '') }
    expect(result).toEqual(word ? invalid : { valid: true })
  })

  const foil = (time: string | string[]) => ({
    'X-Foil-Timestamp': time,
    'X-Foil-Signature': 'a'.repeat(64),
  })
  const standard = (signature: string) => ({
    'webhook-id': '1',
    'webhook-timestamp': '1',
    'webhook-signature': signature,
  })
  test.each([
    ['no headers', {}],
    ['half of each format', { 'X-Foil-Timestamp': '1', 'webhook-id': 'evt_1' }],
    ['a time that is not a number', foil('1e9')],
    ['empty signatures', standard('')],
    ['another version', standard('v2,aaaa')],
    ['a repeated header', foil(['1', '1'])],
  ])('%s', (_what, few) => {
    const result = verifySignature({ headers: few, body, secrets: [newSecret], now })
    expect(result).toMatchObject({ valid: false, problem: expect.stringMatching(/\w/) })
  })
})

test('signing requires a secret', () => {
  expect(() => signatureHeaders({ eventId, body, timestamp, secrets: [] })).toThrow(
    'signing secret',
  )
})

test('the body has the data byte for byte, and members in the documented order', () => {
  const data = '{"b":1.0,  "a":"\\u00e4"}'
  const text = webhookBody({ id: 'evt_1', type: 'session.result.persisted', created_at: 0, data })
  expect(text).toBe(
    `{"id":"evt_1","object":"webhook_event","type":"session.result.persisted","created":"1970-01-01T00:00:00.000Z","data":${data}}`,
  )
})

describe('signing secrets', () => {
  const keyring = createKeyring(randomBytes(32).toString('base64'))

  it('are whsec_ and random 33 bytes in base64', () => {
    expect(newSecret).toMatch(/^whsec_[A-Za-z0-9+/]{44}$/)
    expect(newSecret).not.toBe(oldSecret)
  })

  it('are distinguished from other texts, such as truncated secrets', () => {
    expect(isSigningSecret(newSecret)).toBe(true)
    const cut = [newSecret.slice(0, -1), newSecret.slice(0, -4), newSecret.slice(6), '']
    const longer = [`${newSecret}AAAA`, `${newSecret} `]
    const notBase64 = `${newSecret.slice(0, -1)}-`
    expect([...cut, ...longer, notBase64].filter(isSigningSecret)).toEqual([])
  })

  it('can be opened only with their keyring and endpoint', () => {
    const owner = { keyring, endpointId: 'we_1' }
    const sealed = sealSigningSecret({ ...owner, random: randomBytes, secret: newSecret })
    expect(sealed.includes(Buffer.from(newSecret))).toBe(false)
    expect(openSigningSecret({ ...owner, sealed })).toBe(newSecret)
    const elsewhere = { ...owner, endpointId: 'we_2' }
    expect(() => openSigningSecret({ ...elsewhere, sealed })).toThrow('we_2')
    const other = createKeyring(randomBytes(32).toString('base64'))
    expect(() => openSigningSecret({ ...owner, keyring: other, sealed })).toThrow('we_1')
  })

  it('are active until they expire', () => {
    const rows = [{ expires_at: null }, { expires_at: 11 }, { expires_at: 10 }, { expires_at: 9 }]
    expect(activeSecrets(rows, 10)).toEqual([{ expires_at: null }, { expires_at: 11 }])
  })
})
