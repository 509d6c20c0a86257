import { randomBytes } from 'node:crypto'
import { afterAll, beforeEach, expect, onTestFinished, test } from 'vitest'
import { createKeyring } from '../../../infra/crypto/keyring.ts'
import { timeOrderedId } from '../../../infra/ids.ts'
import { findOrganization, listKeys } from '../../../projections/organizations/queries.ts'
import { createOrganization, revokeApiKey } from '../../../services/organizations/commands.ts'
import { createConsentKeys } from '../../../services/organizations/consent-keys.ts'
import { startApi } from '../../support/api.ts'
import { setStatus } from '../../support/organization-status.ts'

const organizationId = timeOrderedId('org', 0, (size) => Buffer.alloc(size))

const api = await startApi({ roles: ['api'] })
afterAll(() => api.stop())
beforeEach(() => {
  // Lets the caches expire.
  api.now.ms += 60_000
})

async function newInstallation() {
  const fresh = await startApi({ roles: ['api'] })
  onTestFinished(fresh.stop)
  return fresh
}

const gateUrl = 'https://gate.example'
/** Creates the consent keys of a process with this public URL. */
const keysAt = (publicUrl = gateUrl, { deps } = api) => createConsentKeys({ ...deps, publicUrl })

async function active({ pool } = api) {
  const { rows } = await listKeys(pool, organizationId, { limit: 200 })
  return rows.filter(({ status }) => status === 'active')
}
/** Active publishable keys, newest first. */
const origins = async () =>
  (await active())
    .filter(({ type, environment }) => type === 'publishable' && environment === 'live')
    .map(({ allowed_origins }) => allowed_origins)
const revoke = (keyId: string) => revokeApiKey(api.deps, { organizationId, keyId, by: 'operator' })

test('the first call creates an organization with one key of each type, for this origin only', async () => {
  const keys = keysAt()
  const publishable = await keys.publishableKey()
  expect(publishable).toMatch(/^pk_live_/)
  expect(await keys.secretHashes()).toEqual([expect.stringMatching(/^[0-9a-f]{64}$/)])
  expect(await findOrganization(api.pool, organizationId)).toMatchObject({
    slug: 'tidegate-consent',
  })
  const rows = await active()
  expect(rows.map(({ type }) => type).toSorted()).toEqual(['publishable', 'secret'])
  expect(rows.find(({ type }) => type === 'publishable')).toMatchObject({
    display_key: publishable,
    allowed_origins: ['https://gate.example'],
    environment: 'live',
  })
})

test('later calls in any process return the same keys', async () => {
  const [one, two] = [keysAt(), keysAt()]
  expect(await two.publishableKey()).toBe(await one.publishableKey())
  expect(await two.secretHashes()).toEqual(await one.secretHashes())
  expect(await active()).toHaveLength(2)
})

test('servers with different public URLs have separate keys', async () => {
  const one = await keysAt().publishableKey()
  const two = await keysAt('https://other.example').publishableKey()
  api.now.ms += 60_000
  expect(await keysAt().publishableKey()).toBe(one)
  expect(await keysAt('https://other.example').publishableKey()).toBe(two)
  expect(await origins()).toEqual([['https://other.example'], ['https://gate.example']])
})

test('at most ten origins have a key; a revoked one is issued again when needed', async () => {
  for (let i = 0; i < 12; i++) {
    api.now.ms += 1000
    await keysAt(`https://server-${i}.example`).publishableKey()
  }
  const newest = Array.from({ length: 10 }, (_, i) => [`https://server-${11 - i}.example`])
  expect(await origins()).toEqual(newest)
  api.now.ms += 1000
  expect(await keysAt().publishableKey()).toMatch(/^pk_live_/)
  expect(await origins()).toEqual([['https://gate.example'], ...newest.slice(0, 9)])
})

test.each(['suspended', 'deleted'] as const)(
  'rejects with 503 while the organization is %s, also if a key is missing',
  async (status) => {
    await keysAt().publishableKey()
    await setStatus(api.deps, organizationId, status)
    try {
      for (const url of ['https://gate.example', 'https://new.example', 'http://127.0.0.1:7701']) {
        const keys = keysAt(url)
        const unavailable = { code: 'service.unavailable', status: 503 }
        await expect(keys.publishableKey()).rejects.toMatchObject(unavailable)
        await expect(keys.secretHashes()).rejects.toMatchObject(unavailable)
      }
    } finally {
      await setStatus(api.deps, organizationId, 'active')
    }
    expect(await keysAt().publishableKey()).toMatch(/^pk_live_/)
  },
)

test('a server on plain HTTP has test keys', async () => {
  const keys = keysAt('http://127.0.0.1:7700')
  expect(await keys.publishableKey()).toMatch(/^pk_test_/)
  const [hash] = await keys.secretHashes()
  expect(await keysAt().secretHashes()).not.toContain(hash)
})

test('revoked keys are replaced by the time the key caches expire', async () => {
  const keys = keysAt()
  const [publishable, hashes] = [await keys.publishableKey(), await keys.secretHashes()]
  for (const { id, environment } of await active()) if (environment === 'live') await revoke(id)
  expect(await keys.publishableKey()).toBe(publishable)
  api.now.ms += 15_000
  const next = await keys.publishableKey()
  expect(next).not.toBe(publishable)
  const nextHashes = await keys.secretHashes()
  expect(nextHashes).toHaveLength(1)
  expect(nextHashes).not.toEqual(hashes)
  expect(await keysAt().publishableKey()).toBe(next)
})

test('a new master key gets new keys, which keep working when the old one is removed', async () => {
  const fresh = await newInstallation()
  const [old, next] = [randomBytes(32).toString('base64'), randomBytes(32).toString('base64')]
  const keysBy = (...masters: string[]) => {
    const deps = { ...fresh.deps, keyring: createKeyring(masters.join()) }
    return keysAt(gateUrl, { ...fresh, deps })
  }
  const askedOf = async (...masters: string[]) => {
    const keys = keysBy(...masters)
    fresh.now.ms += 60_000
    return { publishable: await keys.publishableKey(), hashes: await keys.secretHashes() }
  }
  const first = await askedOf(old)
  expect(await askedOf(old, next)).toEqual(first)
  const changed = await askedOf(next, old)
  expect(changed.publishable).not.toBe(first.publishable)
  expect(changed.hashes).toEqual([expect.any(String), ...first.hashes])
  // A process that was not restarted yet keeps its keys, and opens tokens sealed for either.
  expect(await askedOf(old, next)).toEqual({ ...changed, publishable: first.publishable })
  expect(await askedOf(next)).toEqual({ ...changed, hashes: changed.hashes.slice(0, 1) })
})

test('failures are not cached', async () => {
  const { decideAs } = api.deps
  let isAway = true
  const failing: typeof decideAs = (actor) => (request) =>
    isAway ? Promise.reject(new Error('away')) : decideAs(actor)(request)
  const keys = createConsentKeys({ ...api.deps, publicUrl: gateUrl, decideAs: failing })
  for (const { id, type } of await active()) if (type === 'publishable') await revoke(id)
  await expect(keys.publishableKey()).rejects.toThrow('away')
  isAway = false
  expect(await keys.publishableKey()).toMatch(/^pk_live_/)
})

test('64 concurrent calls to two processes of a new installation all get working keys', async () => {
  const fresh = await newInstallation()
  // A customer of an earlier version has the slug.
  await createOrganization(fresh.deps, { name: 'Customer', slug: 'tidegate-consent' })
  const processes = [keysAt(gateUrl, fresh), keysAt(gateUrl, fresh)]
  const asking = processes.flatMap((keys) => Array<typeof keys>(32).fill(keys))
  const results = await Promise.all(
    asking.map(async (keys) => [await keys.publishableKey(), await keys.secretHashes()] as const),
  )
  fresh.now.ms += 15_000
  const opening = await keysAt(gateUrl, fresh).secretHashes()
  const working = (await active(fresh)).map(({ display_key }) => display_key)
  expect(working).toEqual(expect.arrayContaining(results.map(([key]) => key)))
  expect(opening).toEqual(expect.arrayContaining(results.flatMap(([, hashes]) => hashes)))
  const { rows: organizations } = await fresh.pool.query('select slug from read.organizations')
  expect(organizations).toHaveLength(2)
})
