import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { createKeyring } from '../../../../infra/crypto/keyring.ts'
import type { DomainReader } from '../../../../services/gate/context.ts'
import {
  domainChallenge,
  domainOf,
  findProof,
  verifiedPrefix,
} from '../../../../services/gate/registry/ownership.ts'
import { service } from '../given.ts'

test.each([
  ['https://acme.dev', 'acme.dev', 'ACME_'],
  ['https://www.my-app.co.uk/mail', 'my-app.co.uk', 'MY_APP_'],
  ['https://acme.github.io', 'acme.github.io', 'ACME_'],
  ['https://xn--mller-kva.example', 'xn--mller-kva.example', 'XN_MLLER_KVA_'],
  ['https://3d-print.shop', '3d-print.shop', '_3D_PRINT_'],
  ['https://openai.com', 'openai.com', 'OPENAI_'],
])('%s is of %s, whose variables begin with %s', (website, domain, prefix) => {
  expect(domainOf(website)?.domain).toBe(domain)
  expect(verifiedPrefix({ ...service, verified_domain: domain })).toBe(prefix)
  const vouchedFor = { ...service, verified: true, definition: { ...service.definition, website } }
  expect(verifiedPrefix(vouchedFor)).toBe(prefix)
})

test.each([
  'https://co.uk',
  'https://github.io',
  'http://localhost:3000',
  'http://127.0.0.1',
  'https://[2001:db8::1]',
])('%s is of no domain; what the operator vouches for there has the name of its id', (website) => {
  expect(domainOf(website)).toBeNull()
  const there = { ...service, definition: { ...service.definition, website } }
  expect(verifiedPrefix(there)).toBeNull()
  expect(verifiedPrefix({ ...there, verified: true })).toBe('ACME_MAIL_')
})

test.each(['openai.example', '0penai.dev', 'database.dev', 'next.dev', 'gh.dev'])(
  'nobody gets the variables of many by %s',
  (verified_domain) => expect(verifiedPrefix({ ...service, verified_domain })).toBeNull(),
)

test('what nobody has verified has no variables of its own', () =>
  expect(verifiedPrefix(service)).toBeNull())

const claim = { organizationId: 'org_1', serviceId: 'acme', domain: 'acme.dev' }
const secret = () => randomBytes(32).toString('base64')

function readerOf(found: { txt?: string[]; file?: string }): DomainReader & { read: string[] } {
  const read: string[] = []
  return {
    read,
    async txtRecords(name) {
      read.push(name)
      return found.txt ?? []
    },
    async fileAt(url) {
      read.push(url)
      return found.file
    },
  }
}

test('a challenge is found in DNS or in the file, and is good for one organization, service and domain', async () => {
  const keyring = createKeyring(secret())
  const { dns, file } = domainChallenge(keyring, claim)
  const nothing = readerOf({})
  expect(await findProof(nothing, keyring, claim)).toBeUndefined()
  expect(nothing.read).toEqual([
    '_tidegate.acme.dev',
    'https://acme.dev/.well-known/tidegate-verification.txt',
  ])
  const byDns = readerOf({ txt: ['v=spf1 -all', dns.value] })
  const byFile = readerOf({ file: `another\r\n${file.content}\r\n` })
  expect(await findProof(byDns, keyring, claim)).toBe('dns')
  expect(await findProof(byFile, keyring, claim)).toBe('file')
  for (const other of [
    { organizationId: 'org_2' },
    { serviceId: 'acme2' },
    { domain: 'acme.example' },
  ])
    for (const by of [byDns, byFile])
      expect(await findProof(by, keyring, { ...claim, ...other })).toBeUndefined()
})

test('a challenge stays good when a new master key is put in front', async () => {
  const old = secret()
  const { dns } = domainChallenge(createKeyring(old), claim)
  const keyring = createKeyring(`${secret()},${old}`)
  expect(domainChallenge(keyring, claim).dns.value).not.toBe(dns.value)
  expect(await findProof(readerOf({ txt: [dns.value] }), keyring, claim)).toBe('dns')
})
