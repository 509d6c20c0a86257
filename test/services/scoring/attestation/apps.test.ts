import { generateKeyPairSync } from 'node:crypto'
import { expect, it } from 'vitest'
import {
  loadAttestedApps,
  readAttestedApps,
} from '../../../../services/scoring/attestation/apps.ts'
import { createApple, createGoogle } from '../../../support/attestation.ts'

const { decryption_key, verification_key } = createGoogle()
const ios = { platform: 'ios', organization: 'org_1', app_id: 'ABCDE12345.com.example.shop' }
const android = {
  platform: 'android',
  organization: 'org_1',
  package_name: 'com.example.shop',
  decryption_key,
  verification_key,
}
const read = (file: unknown) => readAttestedApps(JSON.stringify(file))

it("reads apps of both platforms, with Apple's root certificate by default", () => {
  const { apps, root } = read({ apps: [ios, android] })
  expect(apps.map(({ platform }) => platform)).toEqual(['ios', 'android'])
  expect(root.subject).toContain('Apple App Attestation Root CA')
  const { pem, root: own } = createApple()
  expect(read({ apps: [], apple_root: pem }).root.fingerprint256).toBe(own.fingerprint256)
})

const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'secp384r1' })
const otherCurve = publicKey.export({ type: 'spki', format: 'der' }).toString('base64')

it.each<[string, unknown]>([
  ['apps.0.app_id', { apps: [{ ...ios, app_id: 'com.example.shop' }] }],
  ['apps.0.organization', { apps: [{ ...ios, organization: 'acme' }] }],
  ['apps.1.decryption_key', { apps: [ios, { ...android, decryption_key: 'c2hvcnQ=' }] }],
  ['apps.0.verification_key', { apps: [{ ...android, verification_key: 'bm9uZQ==' }] }],
  ['apps.0.verification_key', { apps: [{ ...android, verification_key: otherCurve }] }],
  ['apps.0.package_name', { apps: [{ ...android, package_name: 'shop' }] }],
  ['apps.0.platform', { apps: [{ ...ios, platform: 'web' }] }],
  ['apple_root', { apps: [], apple_root: 'none' }],
  ['apps', {}],
])('names the invalid member %s, but not its value', (member, file) => {
  const text = JSON.stringify(file)
  expect(() => readAttestedApps(text)).toThrow(`\n  ${member}: `)
  for (const secret of ['c2hvcnQ=', 'bm9uZQ==', otherCurve])
    expect(() => readAttestedApps(text)).not.toThrow(secret)
})

it('throws if the file is not JSON, and returns undefined without a file', () => {
  expect(() => readAttestedApps('{')).toThrow('ATTESTED_APPS_FILE is not valid')
  expect(loadAttestedApps({})).toBeUndefined()
})
