import { createPrivateKey, randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  type DeliveryEnvelope,
  deliveryEnvelopeSchema,
  deliveryKeyId,
  deliveryRequestSchema,
  generateDeliveryKeys,
  isUsablePublicKey,
  openEnvelope,
  sealEnvelope,
  UnreadableEnvelope,
} from '../../../infra/wire/delivery-envelope.ts'
import request from '../../fixtures/gate-delivery/delivery-request.json' with { type: 'json' }
import vector from '../../fixtures/gate-delivery/vector.v1.json' with { type: 'json' }

const envelope = deliveryEnvelopeSchema.parse(vector.envelope)
const vectorKey = createPrivateKey({
  key: Buffer.from(vector.private_key_pkcs8, 'base64'),
  format: 'der',
  type: 'pkcs8',
})
const payload = { version: 1 as const, outputs: { ACME_KEY: 'secret\n"value"' }, ack_token: 'ack' }

describe('the golden vector', () => {
  test('opens', () => {
    expect(openEnvelope(envelope, vectorKey)).toEqual(vector.payload)
  })

  test('has the fingerprint of its public key as key id', () => {
    const { public_key, key_id } = deliveryRequestSchema.parse(request.delivery)
    expect(deliveryKeyId(Buffer.from(public_key, 'base64url'))).toBe(key_id)
    expect(key_id).toBe(request.derived_key_id)
  })

  test('opens what is sealed to its key, with new keys, salt and iv each time', () => {
    const privateKey = vectorKey
    const delivery = deliveryRequestSchema.parse(vector.delivery)
    const [first, second] = [0, 1].map(() =>
      sealEnvelope(payload, { delivery, random: randomBytes }),
    )
    if (!first || !second) throw new Error('unreachable')
    expect(openEnvelope(first, privateKey)).toEqual(payload)
    expect(openEnvelope(second, privateKey)).toEqual(payload)
    for (const name of ['ephemeral_public_key', 'salt', 'iv', 'ciphertext'] as const)
      expect(first[name]).not.toBe(second[name])
  })
})

describe('envelopes', () => {
  const { privateKey, delivery } = generateDeliveryKeys()

  test('return any outputs unchanged', () => {
    const seed = Date.now()
    console.log('fast-check seed', seed)
    const names = fc.string().filter((name) => name !== '__proto__')
    const values = fc.string({ unit: 'grapheme' })
    fc.assert(
      fc.property(fc.dictionary(names, values, { noNullPrototype: true }), (outputs) => {
        const plain = { version: 1 as const, outputs }
        const sealed = sealEnvelope(plain, { delivery, random: randomBytes })
        expect(deliveryEnvelopeSchema.parse(sealed)).toEqual(sealed)
        expect(openEnvelope(sealed, privateKey)).toEqual(plain)
      }),
      { seed, numRuns: 50 },
    )
  })

  test('cannot be opened with another key', () => {
    const sealed = sealEnvelope(payload, { delivery, random: randomBytes })
    const other = generateDeliveryKeys().privateKey
    expect(() => openEnvelope(sealed, other)).toThrow(UnreadableEnvelope)
  })

  test.each(['ephemeral_public_key', 'salt', 'iv', 'ciphertext', 'tag'] as const)(
    'cannot be opened with a changed %s',
    (name) => {
      const sealed = sealEnvelope(payload, { delivery, random: randomBytes })
      const bytes = Buffer.from(sealed[name], 'base64url')
      bytes[0] = (bytes[0] ?? 0) ^ 1
      const changed: DeliveryEnvelope = { ...sealed, [name]: bytes.toString('base64url') }
      expect(() => openEnvelope(changed, privateKey)).toThrow(UnreadableEnvelope)
    },
  )

  test.each([
    ['another version', { version: 2 }],
    ['another algorithm', { algorithm: 'none' }],
    ['a short salt', { salt: 'AAAA' }],
    ['padding', { iv: 'AAAAAAAAAAAAAAA=' }],
    ['non-canonical base64url', { tag: `${'A'.repeat(21)}B` }],
  ])('the schema rejects %s', (_, change) => {
    expect(deliveryEnvelopeSchema.safeParse({ ...vector.envelope, ...change }).success).toBe(false)
  })
})

test('ignores unknown members in the envelope and its payload', () => {
  const more = { ...vector.envelope, note: 'x', __proto__: { salt: 'y' } }
  expect(deliveryEnvelopeSchema.parse(more)).toEqual(vector.envelope)
  const { privateKey, delivery } = generateDeliveryKeys()
  const later = { ...payload, expires_at: 'later' }
  const sealed = sealEnvelope(later, { delivery, random: randomBytes })
  expect(openEnvelope(sealed, privateKey)).toEqual(payload)
})

// Points whose shared secret is always zero (RFC 7748, section 6.1).
const lowOrder = [
  '0000000000000000000000000000000000000000000000000000000000000000',
  '0100000000000000000000000000000000000000000000000000000000000000',
  'e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800',
  '5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157',
  'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  'edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  'eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
]

test.each(lowOrder)('the low-order point %s is not usable', (hex) => {
  expect(isUsablePublicKey(Buffer.from(hex, 'hex').toString('base64url'))).toBe(false)
})

test('other public keys are usable unless their length is wrong', () => {
  expect(isUsablePublicKey(generateDeliveryKeys().delivery.public_key)).toBe(true)
  expect(isUsablePublicKey(randomBytes(31).toString('base64url'))).toBe(false)
  expect(isUsablePublicKey('')).toBe(false)
})
