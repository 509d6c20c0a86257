import { expect, test } from 'vitest'
import type { DomainEvent } from '../../infra/event-store/event.ts'
import { asId } from '../../infra/ids.ts'
import { organizationsProjection } from '../../projections/organizations/projection.ts'
import {
  countKeys,
  findEndedKeys,
  findKey,
  findKeyByLookupHash,
  findOrganization,
  findOrganizationBySlug,
  listKeys,
  recipientKeys,
} from '../../projections/organizations/queries.ts'
import type { ApiKeyIssued } from '../../schemas/events.ts'
import { recordedIn, useReadModel } from './read-model.ts'

const recorded = recordedIn('tidegate.organizations.v1')
const model = await useReadModel(organizationsProjection, (event) => recorded(event))
const organizationId = asId('org', `org_${'1'.repeat(26)}`)
const keyId = (n: number) => asId('key', `key_${String(n).padStart(26, '0')}`)
const find = () => findOrganization(model.pool, organizationId)
const keyOf = (...hashes: string[]) => findKeyByLookupHash(model.pool, hashes)

const created: DomainEvent = {
  type: 'OrganizationCreated',
  data: { organization_id: organizationId, name: 'Acme', slug: 'acme', created_at: 10 },
}

function issued(n: number, overrides: Partial<ApiKeyIssued> = {}): DomainEvent {
  const data: ApiKeyIssued = {
    organization_id: organizationId,
    key_id: keyId(n),
    type: 'secret',
    environment: 'live',
    name: `Key ${n}`,
    client_target: 'browser',
    allowed_origins: null,
    scopes: ['sessions:read'],
    lookup_hash: `hash${n}`,
    secret_hash_sealed: Buffer.from([0, 1, 255, n]),
    key_preview: 'sk_live_0000...0000',
    display_key: null,
    replaces_key_id: null,
    issued_at: 100 + n,
    expires_at: null,
    ...overrides,
  }
  return { type: 'ApiKeyIssued', data }
}
const publishable = { type: 'publishable', scopes: null, secret_hash_sealed: null } as const

const base = { organization_id: organizationId }
const rotated = (n: number, grace_expires_at: number): DomainEvent => ({
  type: 'ApiKeyRotated',
  data: {
    ...base,
    key_id: keyId(n),
    replacement_key_id: keyId(9),
    rotated_at: 1,
    grace_expires_at,
  },
})
const revoked = (n: number): DomainEvent => ({
  type: 'ApiKeyRevoked',
  data: { ...base, key_id: keyId(n), revoked_at: 250, reason: 'requested' },
})

test.each<[DomainEvent, object]>([
  [
    { type: 'OrganizationRenamed', data: { ...base, name: 'Acme 2', renamed_at: 20 } },
    { name: 'Acme 2', updated_at: 20 },
  ],
  [
    { type: 'OrganizationSuspended', data: { ...base, suspended_at: 30 } },
    { status: 'suspended', updated_at: 30 },
  ],
  [
    { type: 'OrganizationReactivated', data: { ...base, reactivated_at: 40 } },
    { status: 'active', updated_at: 40 },
  ],
  [
    { type: 'OrganizationDeleted', data: { ...base, deleted_at: 50 } },
    { status: 'deleted', updated_at: 50 },
  ],
])('an organization changes with %j', async (event, changes) => {
  await model.given(created)
  const first = {
    id: organizationId,
    name: 'Acme',
    slug: 'acme',
    status: 'active',
    secret_limit: null,
    publishable_limit: null,
    max_key_days: null,
    capabilities: [],
    created_at: 10,
    updated_at: 10,
  }
  expect(await findOrganizationBySlug(model.pool, 'acme')).toEqual(first)
  expect(await findOrganizationBySlug(model.pool, 'other')).toBeUndefined()
  await model.given(event)
  expect(await find()).toEqual({ ...first, ...changes })
})

test('limits and capabilities of an organization apply to its keys', async () => {
  const limits = (secret_limit: number | null): DomainEvent => ({
    type: 'OrganizationLimitsChanged',
    data: { ...base, secret_limit, publishable_limit: null, max_key_days: null, changed_at: 20 },
  })
  const capability = 'ip_rotation'
  await model.given(created, issued(1), limits(1200), {
    type: 'OrganizationCapabilityEnabled',
    data: { ...base, capability, enabled_at: 30 },
  })
  const allowed = { rateLimit: 1200, capabilities: [capability] }
  expect((await keyOf('hash1'))?.principal).toMatchObject(allowed)
  await model.given(limits(null), {
    type: 'OrganizationCapabilityDisabled',
    data: { ...base, capability, disabled_at: 50 },
  })
  expect((await keyOf('hash1'))?.principal).toMatchObject({ rateLimit: null, capabilities: [] })
})

test('a repeated event does not undo a later one', async () => {
  const rename = (name: string, id: string) =>
    recorded({ type: 'OrganizationRenamed', data: { ...base, name, renamed_at: 20 } }, { id })
  const first = rename('One', 'a')
  await model.apply([recorded(created), first, rename('Two', 'b'), first])
  await model.apply([first])
  expect(await find()).toMatchObject({ name: 'Two' })
})

test('a key is found by any of its lookup hashes, with the data for authentication', async () => {
  const [a, b] = ['https://a.example', 'https://b.example']
  await model.given(
    created,
    issued(1),
    issued(2, {
      ...publishable,
      environment: 'test',
      allowed_origins: [a],
      display_key: 'pk_test_x',
    }),
    issued(3, { ...publishable, client_target: 'native_ios' }),
    issued(4, { ...publishable, allowed_origins: [a, b] }),
    issued(5, { ...publishable, allowed_origins: [b] }),
  )
  expect(await keyOf('other', 'hash1')).toEqual({
    principal: {
      type: 'secret',
      keyId: keyId(1),
      organizationId,
      environment: 'live',
      scopes: ['sessions:read'],
      capabilities: [],
      origins: [a, b],
      rateLimit: null,
    },
    status: 'active',
    endsAt: null,
    organizationStatus: 'active',
  })
  expect((await keyOf('hash2'))?.principal).toEqual({
    type: 'publishable',
    shortensAddresses: false,
    keyId: keyId(2),
    organizationId,
    environment: 'test',
    clientTarget: 'browser',
    allowedOrigins: [a],
    rateLimit: null,
  })
  const native = { clientTarget: 'native_ios', allowedOrigins: [] }
  expect((await keyOf('hash3'))?.principal).toMatchObject(native)
  expect(await keyOf('hash9')).toBeUndefined()
  expect((await findKey(model.pool, organizationId, keyId(2)))?.display_key).toBe('pk_test_x')
})

test('rotation gives the old key a grace period, revocation ends the key, and neither is undone', async () => {
  const recipients = (now: number, environment: 'live' | 'test' = 'live') =>
    recipientKeys(model.pool, organizationId, environment, now)
  const idsAt = async (now: number) => (await recipients(now)).map((key) => key.keyId)
  await model.given(created, issued(1), issued(2, { replaces_key_id: keyId(1) }), rotated(1, 300))
  expect(await keyOf('hash1')).toMatchObject({ status: 'rotating', endsAt: 300 })
  expect([await idsAt(299), await idsAt(300)]).toEqual([[keyId(2), keyId(1)], [keyId(2)]])
  expect((await recipients(0))[0]?.secretHashSealed).toEqual(Buffer.from([0, 1, 255, 2]))
  expect(await recipients(0, 'test')).toEqual([])
  const counts = { active: 1, secret: { live: 2, test: 0 } }
  expect(await countKeys(model.pool, organizationId)).toEqual(counts)
  await model.given(revoked(1), rotated(1, 300))
  expect(await keyOf('hash1')).toMatchObject({ status: 'revoked' })
  expect(await idsAt(0)).toEqual([keyId(2)])
})

test('the name, origins and scopes of a key change', async () => {
  const [secret, browser] = [
    { ...base, key_id: keyId(1) },
    { ...base, key_id: keyId(2) },
  ]
  const allowed_origins = ['https://a.example']
  await model.given(
    created,
    issued(1),
    issued(2, { ...publishable, allowed_origins: [] }),
    { type: 'ApiKeyRenamed', data: { ...secret, name: 'New', renamed_at: 1 } },
    { type: 'ApiKeyScopesChanged', data: { ...secret, scopes: ['*'], changed_at: 2 } },
    { type: 'ApiKeyOriginsChanged', data: { ...browser, allowed_origins, changed_at: 3 } },
  )
  const changed = (n: number) => findKey(model.pool, organizationId, keyId(n))
  expect(await changed(1)).toMatchObject({ name: 'New', scopes: ['*'] })
  expect(await changed(2)).toMatchObject({ allowed_origins, scopes: null })
  expect(await findKey(model.pool, `org_${'2'.repeat(26)}`, keyId(1))).toBeUndefined()
})

test('pages list each key once, newest first, while keys are added and changed', async () => {
  const ofOneTime = [1, 2, 3, 4, 5].map((n) => issued(n, { issued_at: 100 }))
  await model.given(created, ...ofOneTime, issued(6))
  const seen: string[] = []
  let after: { createdAt: number; id: string } | undefined
  for (let more = true, n = 10; more && n < 20; n++) {
    const { rows, hasMore } = await listKeys(model.pool, organizationId, { limit: 2, after })
    seen.push(...rows.map((row) => row.id))
    const last = rows.at(-1)
    after = last && { createdAt: last.created_at, id: last.id }
    more = hasMore
    await model.given(issued(n), rotated(2, 300), revoked(3))
  }
  expect(seen).toEqual([6, 5, 4, 3, 2, 1].map(keyId))
})

test('a key expires at its newest expiry, and is then no recipient of tokens', async () => {
  const ids = { ...base, key_id: keyId(1) }
  const expiry = { ...ids, expires_at: 300, changed_at: 2 }
  const expired: DomainEvent = {
    type: 'ApiKeyRevoked',
    data: { ...ids, revoked_at: 300, reason: 'expired' },
  }
  await model.given(created, issued(1, { expires_at: 900 }), {
    type: 'ApiKeyExpiryChanged',
    data: expiry,
  })
  expect(await keyOf('hash1')).toMatchObject({ status: 'active', endsAt: 300 })
  const recipients = async (now: number) =>
    (await recipientKeys(model.pool, organizationId, 'live', now)).length
  expect([await recipients(299), await recipients(300)]).toEqual([1, 0])
  expect(await findEndedKeys(model.pool, { now: 299, limit: 9 })).toEqual([])
  expect(await findEndedKeys(model.pool, { now: 300, limit: 9 })).toHaveLength(1)
  await model.given(expired)
  expect(await findKey(model.pool, organizationId, keyId(1))).toMatchObject({
    status: 'revoked',
    revoked_at: 300,
    revoked_reason: 'expired',
  })
})

test('rotating keys are found after their grace period, the longest expired first', async () => {
  const rotations = [rotated(1, 300), rotated(2, 200), rotated(3, 301), rotated(4, 100)]
  await model.given(created, ...[1, 2, 3, 4, 5].map((n) => issued(n)), ...rotations, revoked(4))
  const ended = async (limit: number) =>
    (await findEndedKeys(model.pool, { now: 300, limit })).map((key) => key.keyId)
  expect(await ended(10)).toEqual([keyId(2), keyId(1)])
  expect(await ended(1)).toEqual([keyId(2)])
})
