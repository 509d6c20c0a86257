import { createHash, createPublicKey, X509Certificate } from 'node:crypto'
import { decode, encode } from 'cborg'
import fc from 'fast-check'
import developmentFixture from 'node-app-attest/test/fixtures/attestation-development.json' with {
  type: 'json',
}
import productionFixture from 'node-app-attest/test/fixtures/attestation-production.json' with {
  type: 'json',
}
import { describe, expect, it } from 'vitest'
import {
  verifyAppAssertion,
  verifyAppAttest,
} from '../../../../infra/wire/attestation/app-attest.ts'
import { appleRoot } from '../../../../infra/wire/attestation/apple-root.ts'
import { clientDataHash } from '../../../../infra/wire/attestation/client-data.ts'
import {
  type Apple,
  type AttestOptions,
  type Authority,
  appAssertion,
  appAttestation,
  certify,
  createApple,
  createDeviceKey,
  hashOfDocument,
  makeKeys,
} from '../../../support/attestation.ts'

const appId = 'ABCDE12345.com.example.shop'
const hash = hashOfDocument('challenge', 'client key', 'id')
const day = 24 * 60 * 60 * 1000

const apple = createApple()
const key = createDeviceKey()

const expectedBy = ({ root }: Apple, keyId: string) => ({
  appIds: ['ABCDE12345.com.example.other', appId],
  clientDataHash: hash,
  keyId,
  root,
  at: Date.now(),
  allowsDevelopment: false,
})

const attest = (some: Partial<AttestOptions> = {}) =>
  appAttestation({ apple, key, appId, hash, ...some })
const verified = (some: Partial<AttestOptions> = {}) =>
  verifyAppAttest(attest(some), expectedBy(apple, key.keyId))

/** Validity between two days, counted from today. */
const validBetween = (from: number, until: number) => ({
  from: Date.now() + from * day,
  until: Date.now() + until * day,
})
const swapped = (authData: Buffer, own: Buffer) =>
  createHash('sha256').update(own).update(authData).digest()
/** Issues a certificate that is not an authority. */
const deviceBy = (by: Authority) =>
  certify({ subject: 'Device', keys: makeKeys(), by, isAuthority: false })

function withIntermediate(): Partial<AttestOptions> {
  const intermediate = certify({ subject: 'Between', keys: makeKeys(), by: apple.authority })
  const issuer = { ...apple, authority: intermediate }
  return { apple: issuer, x5cOf: (leaf) => [leaf, intermediate, apple.authority] }
}

describe('an attestation', () => {
  it('returns the key and the app', () => {
    const found = verified()
    const spki = key.keys.publicKey.export({ type: 'spki', format: 'der' })
    expect(found).toEqual({ publicKey: spki.toString('base64'), appId })
  })

  it.each<[string, () => Partial<AttestOptions>, string]>([
    ['another document', () => ({ hash: hashOfDocument('other', 'client key', 'id') }), 'nonce'],
    ['the nonce in the wrong order', () => ({ nonceOf: swapped }), 'nonce'],
    ['another app', () => ({ appId: 'ABCDE12345.com.example.third' }), 'app'],
    ['the same app by another team', () => ({ appId: appId.replace('ABCDE', 'ZZZZZ') }), 'app'],
    ['a development build', () => ({ isDevelopment: true }), 'environment'],
    ['a used key', () => ({ counter: 1 }), 'counter'],
    ['another credential', () => ({ credentialId: Buffer.alloc(32, 7) }), 'key'],
    ['an expired certificate', () => validBetween(-3, -1), 'certificates'],
    ['a certificate that is not valid yet', () => validBetween(1, 2), 'certificates'],
    ['no authority', () => ({ x5cOf: (leaf) => [leaf] }), 'certificates'],
    [
      'one authority too many',
      () => ({ x5cOf: (leaf) => [leaf, apple.authority, apple.authority] }),
      'certificates',
    ],
    ['an intermediate authority', withIntermediate, 'certificates'],
    [
      'a certificate issued by another device',
      () => ({ apple: { ...apple, authority: deviceBy(apple.authority) } }),
      'certificates',
    ],
    [
      'an issuer that is not an authority',
      () => ({ apple: { ...apple, authority: deviceBy(apple.top) } }),
      'certificates',
    ],
    ['another root', () => ({ apple: createApple() }), 'certificates'],
  ])('with %s is rejected', (_name, some, problem) => {
    expect(verified(some())).toEqual({ problem })
  })

  it('of a development build is accepted with allowsDevelopment', () => {
    const expected = { ...expectedBy(apple, key.keyId), allowsDevelopment: true }
    expect(verifyAppAttest(attest({ isDevelopment: true }), expected)).toMatchObject({ appId })
  })

  it('is rejected with an expired authority', () => {
    const old = createApple(validBetween(-3, -1))
    const found = verifyAppAttest(attest({ apple: old }), expectedBy(old, key.keyId))
    expect(found).toEqual({ problem: 'certificates' })
  })

  it('is rejected with any relevant byte changed, and never throws', () => {
    const good = attest()
    const expected = expectedBy(apple, key.keyId)
    const valid = verifyAppAttest(good, expected)
    fc.assert(
      fc.property(fc.nat(good.length - 1), fc.integer({ min: 1, max: 255 }), (at, by) => {
        const bytes = Buffer.from(good)
        bytes[at] = (bytes[at] ?? 0) ^ by
        const found = verifyAppAttest(bytes, expected)
        // Unused members, such as the receipt, may change.
        expect('problem' in found || JSON.stringify(found) === JSON.stringify(valid)).toBe(true)
      }),
    )
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        expect(verifyAppAttest(Buffer.from(bytes), expected)).toEqual({ problem: 'malformed' })
      }),
    )
  })

  it.each([
    ['deeply nested', Buffer.alloc(12_000, 0x81)],
    ['endless', Buffer.alloc(12_000, 0x9f)],
    ['of a huge declared size', Buffer.from('bbffffffffffffffff', 'hex')],
    ['empty', Buffer.alloc(0)],
  ])('is malformed if it is %s', (_name, bytes) => {
    expect(verifyAppAttest(bytes, expectedBy(apple, key.keyId))).toEqual({ problem: 'malformed' })
    const expected = { appIds: [appId], clientDataHash: hash, publicKey: apple.root.publicKey }
    expect(verifyAppAssertion(bytes, expected)).toEqual({ problem: 'malformed' })
  })
})

it('an attestation may have a few unknown items, but not many', () => {
  const withItems = (count: number) =>
    Buffer.from(encode({ ...decode(attest()), more: Array(count).fill(0) }))
  const expected = expectedBy(apple, key.keyId)
  expect(verifyAppAttest(withItems(20), expected)).toMatchObject({ appId })
  expect(verifyAppAttest(withItems(100), expected)).toEqual({ problem: 'malformed' })
})

describe('a recorded attestation by Apple', () => {
  const at = Date.UTC(2024, 1, 7)
  const theirApp = 'V8H6LQ9448.io.uebelacker.AppAttestExample'
  const root = new X509Certificate(appleRoot)
  const expectedFor = ({ challenge, keyId }: typeof productionFixture) => ({
    appIds: [theirApp],
    keyId,
    root,
    at,
    clientDataHash: createHash('sha256').update(Buffer.from(challenge, 'base64')).digest(),
    allowsDevelopment: false,
  })
  const bytesOf = ({ attestation }: typeof productionFixture) => Buffer.from(attestation, 'base64')

  it('is accepted at its time', () => {
    const found = verifyAppAttest(bytesOf(productionFixture), expectedFor(productionFixture))
    expect(found).toMatchObject({ appId: theirApp })
  })

  it('of a development build is accepted only with allowsDevelopment', () => {
    const bytes = bytesOf(developmentFixture)
    expect(verifyAppAttest(bytes, expectedFor(developmentFixture))).toEqual({
      problem: 'environment',
    })
    const allowing = { ...expectedFor(developmentFixture), allowsDevelopment: true }
    expect(verifyAppAttest(bytes, allowing)).toMatchObject({ appId: theirApp })
  })

  it('is rejected years later and with another root', () => {
    const bytes = bytesOf(productionFixture)
    const expected = expectedFor(productionFixture)
    for (const other of [{ at: Date.UTC(2026, 1, 5) }, { root: apple.root }])
      expect(verifyAppAttest(bytes, { ...expected, ...other })).toEqual({ problem: 'certificates' })
  })

  it('has valid assertions by its key', () => {
    const sent = Buffer.from(
      'omlzaWduYXR1cmVYRzBFAiBB8BGAwkmFCg1M5J0mOYEun0SUN1/lse79/7ypG9WiMQIhAIHvqj7eg59B1PMFX1CN4GMGlsgfFtdL30pHCf7G/dNRcWF1dGhlbnRpY2F0b3JEYXRhWCXKPdw7T3iujcFZbHVrHX0mDSMrNms5PzEbrFbQPRA6rEAAAAAB',
      'base64',
    )
    const key =
      'MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEg69t2YzgcPTLUx8Zgu+rbcikeaEL8Ppb+HG0QTIulz8YUB9tgv1pDRruWk87nZC3our56pzIWaqXEbaWyamdzA=='
    const payload =
      '{"subject":"Lorem ipsum","message":"Lorem ipsum dolor sit amet, consectetur adipiscing elit."}'
    const expected = {
      appIds: [theirApp],
      clientDataHash: createHash('sha256').update(payload).digest(),
      publicKey: createPublicKey({ key: Buffer.from(key, 'base64'), format: 'der', type: 'spki' }),
    }
    expect(verifyAppAssertion(sent, expected)).toMatchObject({ counter: 1 })
  })
})

describe('an assertion', () => {
  const assertion = (some: Partial<Parameters<typeof appAssertion>[0]> = {}) => {
    const { publicKey } = key.keys
    const expected = { appIds: [appId], clientDataHash: hash, publicKey }
    return verifyAppAssertion(appAssertion({ key, appId, hash, counter: 5, ...some }), expected)
  }

  it('returns its counter and the app', () => {
    expect(assertion()).toEqual({ counter: 5, appId })
  })

  it('is rejected for another document, app or key, and with the nonce in the wrong order', () => {
    expect(assertion({ hash: Buffer.alloc(32) })).toEqual({ problem: 'signature' })
    expect(assertion({ key: createDeviceKey() })).toEqual({ problem: 'signature' })
    expect(assertion({ appId: 'ABCDE12345.com.example.third' })).toEqual({ problem: 'app' })
    expect(assertion({ nonceOf: swapped })).toEqual({ problem: 'signature' })
  })
})

it('clientDataHash depends on the challenge, the client key and the device key', () => {
  const document = { challenge: 'c', clientPublicKey: 'p', keyId: 'k' }
  expect(clientDataHash(document)).toEqual(hashOfDocument('c', 'p', 'k'))
  const others = [{ challenge: 'x' }, { clientPublicKey: 'x' }, { keyId: 'x' }]
  for (const other of others)
    expect(clientDataHash({ ...document, ...other })).not.toEqual(clientDataHash(document))
})
