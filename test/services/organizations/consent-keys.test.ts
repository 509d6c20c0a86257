import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { createKeyring } from '../../../infra/crypto/keyring.ts'
import { timeOrderedId } from '../../../infra/ids.ts'
import { findOrganization, listKeys } from '../../../projections/organizations/queries.ts'
import { createOrganization, revokeApiKey } from '../../../services/organizations/commands.ts'
import { createConsentKeys } from '../../../services/organizations/consent-keys.ts'
import { setStatus } from '../../support/organization-status.ts'
import { startOrganizations } from './support.ts'

type World = Awaited<ReturnType<typeof startOrganizations>>
const organizationId = timeOrderedId('org', 0, (size) => Buffer.alloc(size))

let world: World
beforeAll(async () => {
  world = await startOrganizations()
})
afterAll(() => world.stop())
beforeEach(() => {
  // What was remembered before is asked for again.
  world.now.ms += 60_000
})

/** As a process has it that is reached at the URL. */
const keysAt = (publicUrl: string) =>
  createConsentKeys({ ...world.deps, pool: world.pool, publicUrl })

async function issued() {
  const { rows } = await listKeys(world.pool, organizationId, { limit: 200 })
  return rows
}
const active = async () => (await issued()).filter(({ status }) => status === 'active')
/** Of the active publishable keys, newest first. */
const origins = async () =>
  (await active())
    .filter(({ type, environment }) => type === 'publishable' && environment === 'live')
    .map(({ allowed_origins }) => allowed_origins)
const revoke = (keyId: string) =>
  revokeApiKey(world.deps, { organizationId, keyId, by: 'operator' })

test('the first who asks makes an organization with one key of each type, for this origin only', async () => {
  const keys = keysAt('https://gate.example')
  const publishable = await keys.publishableKey()
  expect(publishable).toMatch(/^pk_live_/)
  expect(await keys.secretHashes()).toEqual([expect.stringMatching(/^[0-9a-f]{64}$/)])
  expect(await findOrganization(world.pool, organizationId)).toMatchObject({
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

test('whoever asks later, in whichever process, gets the same', async () => {
  const [one, two] = [keysAt('https://gate.example'), keysAt('https://gate.example')]
  expect(await two.publishableKey()).toBe(await one.publishableKey())
  expect(await two.secretHashes()).toEqual(await one.secretHashes())
  expect(await active()).toHaveLength(2)
})

test('servers that are reached at different addresses have a key each, for their own', async () => {
  const one = await keysAt('https://gate.example').publishableKey()
  const two = await keysAt('https://other.example').publishableKey()
  world.now.ms += 60_000
  expect(await keysAt('https://gate.example').publishableKey()).toBe(one)
  expect(await keysAt('https://other.example').publishableKey()).toBe(two)
  expect(await origins()).toEqual([['https://other.example'], ['https://gate.example']])
})

test('ten addresses have a key; the oldest goes, and comes back when it is asked for', async () => {
  for (let i = 0; i < 12; i++) {
    world.now.ms += 1000
    await keysAt(`https://server-${i}.example`).publishableKey()
  }
  const newest = Array.from({ length: 10 }, (_, i) => [`https://server-${11 - i}.example`])
  expect(await origins()).toEqual(newest)
  world.now.ms += 1000
  expect(await keysAt('https://gate.example').publishableKey()).toMatch(/^pk_live_/)
  expect(await origins()).toEqual([['https://gate.example'], ...newest.slice(0, 9)])
})

test.each(['suspended', 'deleted'] as const)(
  'while the organization is %s it is 503, also where a key is missing',
  async (status) => {
    await keysAt('https://gate.example').publishableKey()
    await setStatus(world.deps, organizationId, status)
    try {
      for (const url of ['https://gate.example', 'https://new.example', 'http://127.0.0.1:7701']) {
        const keys = keysAt(url)
        const unavailable = { code: 'service.unavailable', status: 503 }
        await expect(keys.publishableKey()).rejects.toMatchObject(unavailable)
        await expect(keys.secretHashes()).rejects.toMatchObject(unavailable)
      }
    } finally {
      await setStatus(world.deps, organizationId, 'active')
    }
    expect(await keysAt('https://gate.example').publishableKey()).toMatch(/^pk_live_/)
  },
)

test('a server on plain http has keys of the test environment', async () => {
  const keys = keysAt('http://127.0.0.1:7700')
  expect(await keys.publishableKey()).toMatch(/^pk_test_/)
  const [hash] = await keys.secretHashes()
  expect(await keysAt('https://gate.example').secretHashes()).not.toContain(hash)
})

test('keys that were revoked are replaced, at the latest once they are believed nowhere', async () => {
  const keys = keysAt('https://gate.example')
  const [publishable, hashes] = [await keys.publishableKey(), await keys.secretHashes()]
  for (const { id, environment } of await active()) if (environment === 'live') await revoke(id)
  expect(await keys.publishableKey()).toBe(publishable)
  world.now.ms += 15_000
  const next = await keys.publishableKey()
  expect(next).not.toBe(publishable)
  const nextHashes = await keys.secretHashes()
  expect(nextHashes).toHaveLength(1)
  expect(nextHashes).not.toEqual(hashes)
  expect(await keysAt('https://gate.example').publishableKey()).toBe(next)
})

test('a new master key gets keys of its own, which go on when the old one is taken away', async () => {
  const fresh = await startOrganizations()
  try {
    const [old, next] = [randomBytes(32).toString('base64'), randomBytes(32).toString('base64')]
    const keysBy = (...masters: string[]) => {
      const keyring = createKeyring(masters.join())
      return createConsentKeys({
        ...fresh.deps,
        keyring,
        pool: fresh.pool,
        publicUrl: 'https://gate.example',
      })
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
    // A process that was not started again yet goes on with its own, and opens what is sealed to either.
    expect(await askedOf(old, next)).toEqual({ ...changed, publishable: first.publishable })
    expect(await askedOf(next)).toEqual({ ...changed, hashes: changed.hashes.slice(0, 1) })
  } finally {
    await fresh.stop()
  }
})

test('a failure is not remembered', async () => {
  const { decideAs } = world.deps
  let isAway = true
  const options = { ...world.deps, pool: world.pool, publicUrl: 'https://gate.example' }
  const keys = createConsentKeys({
    ...options,
    decideAs: (actor) => (request) =>
      isAway ? Promise.reject(new Error('away')) : decideAs(actor)(request),
  })
  for (const { id, type } of await active()) if (type === 'publishable') await revoke(id)
  await expect(keys.publishableKey()).rejects.toThrow('away')
  isAway = false
  expect(await keys.publishableKey()).toMatch(/^pk_live_/)
})

test('64 who ask two processes of a new installation at once all get keys that work', async () => {
  const fresh = await startOrganizations()
  try {
    // The slug is taken: by a customer from before this version.
    await createOrganization(fresh.deps, { name: 'Customer', slug: 'tidegate-consent' })
    const options = { ...fresh.deps, pool: fresh.pool, publicUrl: 'https://gate.example' }
    const processes = [createConsentKeys(options), createConsentKeys(options)]
    const answers = await Promise.all(
      Array.from({ length: 64 }, async (_, i) => {
        const keys = processes[i % 2] ?? createConsentKeys(options)
        return { key: await keys.publishableKey(), hashes: await keys.secretHashes() }
      }),
    )
    fresh.now.ms += 15_000
    const opening = await createConsentKeys(options).secretHashes()
    const { rows } = await listKeys(fresh.pool, organizationId, { limit: 200 })
    for (const { key, hashes } of answers) {
      expect(rows).toContainEqual(expect.objectContaining({ display_key: key, status: 'active' }))
      for (const hash of hashes) expect(opening).toContain(hash)
    }
    const { rows: organizations } = await fresh.pool.query('select slug from read.organizations')
    expect(organizations).toHaveLength(2)
  } finally {
    await fresh.stop()
  }
})
