import { createPublicKey } from 'node:crypto'
import fc from 'fast-check'
import { CompactEncrypt, CompactSign } from 'jose'
import { describe, expect, it } from 'vitest'
import {
  openPlayToken,
  type PlayKeys,
  playProblem,
} from '../../../../infra/wire/attestation/play-integrity.ts'
import { createGoogle, type Google, playToken, playVerdict } from '../../../support/attestation.ts'

const packageName = 'com.example.shop'
const nonce = Buffer.alloc(32, 9)
const minute = 60_000

const keysOf = ({ encrypt: decryption, verification_key }: Google): PlayKeys => {
  const key = Buffer.from(verification_key, 'base64')
  return { decryption, verification: createPublicKey({ key, format: 'der', type: 'spki' }) }
}
const google = createGoogle()
const keys = keysOf(google)

const problem = (some: object = {}, allowsDevelopment = false) =>
  playProblem(playVerdict(packageName, nonce, some), {
    packageName,
    nonce,
    allowsDevelopment,
    between: [Date.now() - minute, Date.now() + minute],
  })?.problem

const details = (some: object) => ({
  requestDetails: {
    requestPackageName: packageName,
    nonce: nonce.toString('base64url'),
    timestampMillis: String(Date.now()),
    ...some,
  },
})

const ofApp = (appRecognitionVerdict: string, name = packageName) => ({
  appIntegrity: { appRecognitionVerdict, packageName: name },
})
const ofDevice = (...deviceRecognitionVerdict: string[]) => ({
  deviceIntegrity: { deviceRecognitionVerdict },
})
const at = (minutes: number) => details({ timestampMillis: String(Date.now() + minutes * minute) })

describe('a verdict', () => {
  it('is accepted for a genuine device and app', () => {
    expect(problem()).toBeUndefined()
    expect(problem(details({ nonce: `${nonce.toString('base64url')}=` }))).toBeUndefined()
    expect(problem(ofDevice('MEETS_STRONG_INTEGRITY'))).toBeUndefined()
  })

  it.each<[string, object, string]>([
    ['for another document', details({ nonce: Buffer.alloc(32).toString('base64url') }), 'nonce'],
    [
      'of a standard request',
      { requestDetails: { requestPackageName: packageName, requestHash: 'x' } },
      'malformed',
    ],
    ['for another package', details({ requestPackageName: 'com.example.other' }), 'app'],
    ['with another package name', ofApp('PLAY_RECOGNIZED', 'com.example.other'), 'app'],
    ['for a modified app', ofApp('UNRECOGNIZED_VERSION'), 'app'],
    ['from before the document', at(-2), 'time'],
    ['from the future', at(2), 'time'],
    ['for a device that is not genuine', ofDevice(), 'device'],
    ['without labels', { deviceIntegrity: {}, ...ofApp('UNEVALUATED') }, 'device'],
    ['for a device with only basic integrity', ofDevice('MEETS_BASIC_INTEGRITY'), 'device'],
  ])('%s is rejected', (_name, some, expected) => {
    expect(problem(some)).toBe(expected)
  })

  it('for a build that Google does not recognize is accepted with allowsDevelopment', () => {
    expect(problem(ofApp('UNRECOGNIZED_VERSION'), true)).toBeUndefined()
  })

  it.each([[null], ['text'], [[]], [{ requestDetails: null }]])('%j is malformed', (verdict) => {
    const expected = { packageName, nonce, between: [0, 1] as const, allowsDevelopment: true }
    expect(playProblem(verdict, expected)).toEqual({ problem: 'malformed' })
  })
})

describe('a token', () => {
  it('can be opened only with its keys', async () => {
    const token = await playToken({ some: 'verdict' }, google)
    const other = keysOf(createGoogle())
    expect(await openPlayToken(token, keys)).toEqual({ some: 'verdict' })
    for (const wrongKey of [{ verification: other.verification }, { decryption: other.decryption }])
      expect(await openPlayToken(token, { ...keys, ...wrongKey })).toBeUndefined()
  })

  it('with another algorithm is rejected', async () => {
    const payload = Buffer.from('{}')
    const signed = await new CompactSign(payload)
      .setProtectedHeader({ alg: 'HS256' })
      .sign(google.encrypt)
    const wrapped = (text: string, header: { alg: string; enc: string }) =>
      new CompactEncrypt(Buffer.from(text)).setProtectedHeader(header).encrypt(google.encrypt)
    const byHash = await wrapped(signed, { alg: 'A256KW', enc: 'A256GCM' })
    const plain = await wrapped('e30.e30.', { alg: 'A256KW', enc: 'A256GCM' })
    const good = await playToken({}, google)
    const direct = await wrapped(good, { alg: 'dir', enc: 'A256GCM' })
    for (const token of [byHash, plain, direct])
      expect(await openPlayToken(token, keys)).toBeUndefined()
  })

  it('with any other text is rejected', async () => {
    const good = await playToken({}, google)
    const broken = fc.nat(good.length - 1).map((at) => `${good.slice(0, at)}!${good.slice(at + 1)}`)
    await fc.assert(
      fc.asyncProperty(fc.oneof(fc.string({ maxLength: 200 }), broken), async (token) => {
        expect(await openPlayToken(token, keys)).toBeUndefined()
      }),
    )
    expect(await openPlayToken(`${'a'.repeat(16_000)}....`, keys)).toBeUndefined()
  })
})
