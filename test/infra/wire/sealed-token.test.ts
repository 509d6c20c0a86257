import { randomBytes, randomInt, webcrypto } from 'node:crypto'
import { inflateSync } from 'node:zlib'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { secretHashOf } from '../../../infra/crypto/api-keys.ts'
import {
  maxRecipients,
  openToken,
  sealToken,
  UnreadableToken,
} from '../../../infra/wire/sealed-token.ts'
import vector1 from '../../fixtures/sealed-token/vector.v1.json' with { type: 'json' }
import vector2 from '../../fixtures/sealed-token/vector.v2.json' with { type: 'json' }

const { subtle } = webcrypto
const text = new TextEncoder()

async function sha256(...parts: Uint8Array[]): Promise<Uint8Array> {
  return new Uint8Array(await subtle.digest('SHA-256', Buffer.concat(parts)))
}

async function gcmOpen(key: Uint8Array, iv: Uint8Array, sealed: Uint8Array, aad: Uint8Array) {
  const imported = await subtle.importKey('raw', Buffer.from(key), 'AES-GCM', false, ['decrypt'])
  const algorithm = { name: 'AES-GCM', iv: Buffer.from(iv), additionalData: Buffer.from(aad) }
  return new Uint8Array(await subtle.decrypt(algorithm, imported, Buffer.from(sealed)))
}

/** Opens a token by the documented layout with WebCrypto. Shares no code with the module under test. */
async function openIndependently(token: string, secretKey: string): Promise<unknown> {
  const bytes = Uint8Array.from(atob(token), (character) => character.charCodeAt(0))
  const view = new DataView(bytes.buffer)
  expect(view.getUint8(0)).toBe(2)
  const count = view.getUint16(1)
  const header = bytes.slice(0, 19)
  const ciphertextEnd = 19 + view.getUint32(15)
  const recipients = Array.from({ length: count }, (_, index) => {
    const entry = bytes.slice(ciphertextEnd + 16 + index * 92).slice(0, 92)
    return { id: entry.slice(0, 32), nonce: entry.slice(32, 44), box: entry.slice(44) }
  })
  const hash = text.encode(Buffer.from(await sha256(text.encode(secretKey))).toString('hex'))
  const id = await sha256(hash, text.encode('\0sealed-results-recipient-id'))
  const recipient = recipients.find((entry) => Buffer.compare(entry.id, id) === 0)
  if (!recipient) throw new Error('not a recipient')
  const wrapKey = await sha256(hash, text.encode('\0sealed-results'))
  const recipientAad = Buffer.concat([text.encode('foil-sealed-results-v2\0recipient\0'), id])
  const contentKey = await gcmOpen(wrapKey, recipient.nonce, recipient.box, recipientAad)
  const ids = recipients.map(({ id }) => id)
  const purpose = text.encode('foil-sealed-results-v2\0payload\0')
  const payloadAad = Buffer.concat([purpose, header, ...ids])
  const sealed = bytes.slice(19, ciphertextEnd + 16)
  const deflated = await gcmOpen(contentKey, bytes.slice(3, 15), sealed, payloadAad)
  return JSON.parse(inflateSync(deflated).toString())
}

test('opens the version 1 vector by key and by hash', () => {
  expect(openToken(vector1.token, { secretKey: vector1.secretKey })).toEqual(vector1.payload)
  expect(openToken(vector1.token, { secretHash: vector1.secretHash })).toEqual(vector1.payload)
})

test('opens the version 2 vector for every recipient', () => {
  const keys = vector2.secretKeys.map((secretKey) => ({ secretKey }))
  const hashes = vector2.secretHashes.map((secretHash) => ({ secretHash }))
  for (const key of [...keys, ...hashes])
    expect(openToken(vector2.token, key)).toEqual(vector2.payload)
})

test('the independent reader opens the vector', async () => {
  const opened = await openIndependently(vector2.token, 'sk_live_fixture_secondary')
  expect(opened).toEqual(vector2.payload)
})

test.each([1, 2, maxRecipients])('seals tokens to %i keys', async (count) => {
  const keys = Array.from({ length: count }, () => `sk_test_${randomBytes(16).toString('hex')}`)
  const token = sealToken({
    payload: vector2.payload,
    secretHashes: keys.map(secretHashOf),
    random: randomBytes,
  })
  const last = keys.at(-1) ?? ''
  expect(await openIndependently(token, last)).toEqual(vector2.payload)
  expect(openToken(token, { secretKey: last })).toEqual(vector2.payload)
})

test('a key that is not a recipient cannot open a token', () => {
  const token = sealToken({ payload: {}, secretHashes: [secretHashOf('a')], random: randomBytes })
  expect(() => openToken(token, { secretKey: 'b' })).toThrow(UnreadableToken)
  expect(() => openToken(vector1.token, { secretKey: 'b' })).toThrow(UnreadableToken)
})

test('rejects no recipients and too many', () => {
  const seal = (secretHashes: string[]) =>
    sealToken({ payload: {}, secretHashes, random: randomBytes })
  expect(() => seal([])).toThrow(RangeError)
  expect(() => seal(Array(maxRecipients + 1).fill(secretHashOf('a')))).toThrow(RangeError)
})

test.each([vector1, vector2])('detects any changed byte', ({ token, payload }) => {
  const bytes = Buffer.from(token, 'base64')
  for (let at = 0; at < bytes.length; at++) {
    const changed = Buffer.from(bytes)
    changed[at] = (changed[at] ?? 0) ^ (1 << randomInt(8))
    const secretKey = vector1.secretKey
    // A change of another recipient's wrapped key affects only that recipient.
    const isOtherRecipient = bytes[0] === 2 && at >= bytes.length - 60
    if (isOtherRecipient)
      expect(openToken(changed.toString('base64'), { secretKey })).toEqual(payload)
    else expect(() => openToken(changed.toString('base64'), { secretKey })).toThrow(UnreadableToken)
  }
})

test('rejects any other text', () => {
  const bytes = fc
    .uint8Array({ maxLength: 400 })
    .map((array) => Buffer.from(array).toString('base64'))
  fc.assert(
    fc.property(fc.oneof(fc.string(), bytes), (token) => {
      expect(() => openToken(token, { secretKey: 'sk' })).toThrow(UnreadableToken)
    }),
  )
})
