import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { createKeyring } from '../../../../infra/crypto/keyring.ts'
import type { DomainReader } from '../../../../services/gate/context.ts'
import {
  domainChallenge,
  findDomainProof,
  parseRegistrableDomain,
  verifiedEnvPrefix,
} from '../../../../services/gate/registry/ownership.ts'
import { service } from '../fixtures.ts'

test.each([
  ['https://acme.dev', 'acme.dev', 'ACME_'],
  ['https://www.my-app.co.uk/mail', 'my-app.co.uk', 'MY_APP_'],
  ['https://acme.github.io', 'acme.github.io', 'ACME_'],
  ['https://xn--mller-kva.example', 'xn--mller-kva.example', 'XN_MLLER_KVA_'],
  ['https://3d-print.shop', '3d-print.shop', '_3D_PRINT_'],
  ['https://openai.com', 'openai.com', 'OPENAI_'],
])('%s belongs to %s, and its variable prefix is %s', (website, domain, prefix) => {
  expect(parseRegistrableDomain(website)?.domain).toBe(domain)
  expect(verifiedEnvPrefix({ ...service, verified_domain: domain })).toBe(prefix)
  const vouchedFor = { ...service, verified: true, definition: { ...service.definition, website } }
  expect(verifiedEnvPrefix(vouchedFor)).toBe(prefix)
})

test.each([
  'https://co.uk',
  'https://github.io',
  'http://localhost:3000',
  'http://127.0.0.1',
  'https://[2001:db8::1]',
])('%s has no domain, so a verified service there gets the prefix of its id', (website) => {
  expect(parseRegistrableDomain(website)).toBeNull()
  const there = { ...service, definition: { ...service.definition, website } }
  expect(verifiedEnvPrefix(there)).toBeNull()
  expect(verifiedEnvPrefix({ ...there, verified: true })).toBe('ACME_MAIL_')
})

test.each(['openai.example', '0penai.dev', 'database.dev', 'next.dev', 'gh.dev'])(
  'no service can own the variable prefix of %s',
  (verified_domain) => expect(verifiedEnvPrefix({ ...service, verified_domain })).toBeNull(),
)

test('an unverified service has no variable prefix', () =>
  expect(verifiedEnvPrefix(service)).toBeNull())

const claim = { organizationId: 'org_1', serviceId: 'acme', domain: 'acme.dev' }
const secret = () => randomBytes(32).toString('base64')

function readerOf(found: { txt?: string[]; file?: string }): DomainReader & { read: string[] } {
  const read: string[] = []
  return {
    read,
    async lookUpTxt(name) {
      read.push(name)
      return found.txt ?? []
    },
    async fileAt(url) {
      read.push(url)
      return found.file
    },
  }
}

test('a challenge is found in DNS or in the file, and is valid for one organization, service and domain', async () => {
  const keyring = createKeyring(secret())
  const { dns, file } = domainChallenge(keyring, claim)
  const nothing = readerOf({})
  expect(await findDomainProof(nothing, keyring, claim)).toBeUndefined()
  expect(nothing.read).toEqual([
    '_tidegate.acme.dev',
    'https://acme.dev/.well-known/tidegate-verification.txt',
  ])
  const byDns = readerOf({ txt: ['v=spf1 -all', dns.value] })
  const byFile = readerOf({ file: `another\r\n${file.content}\r\n` })
  expect(await findDomainProof(byDns, keyring, claim)).toBe('dns')
  expect(await findDomainProof(byFile, keyring, claim)).toBe('file')
  for (const other of [
    { organizationId: 'org_2' },
    { serviceId: 'acme2' },
    { domain: 'acme.example' },
  ])
    for (const by of [byDns, byFile])
      expect(await findDomainProof(by, keyring, { ...claim, ...other })).toBeUndefined()
})

test('a challenge stays valid after a rotation of the master keys', async () => {
  const old = secret()
  const { dns } = domainChallenge(createKeyring(old), claim)
  const keyring = createKeyring(`${secret()},${old}`)
  expect(domainChallenge(keyring, claim).dns.value).not.toBe(dns.value)
  expect(await findDomainProof(readerOf({ txt: [dns.value] }), keyring, claim)).toBe('dns')
})
