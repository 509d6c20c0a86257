import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { applyNew } from '../../infra/event-store/apply-batch.ts'
import { liveBuild, useSchema } from '../../infra/event-store/builds.ts'
import type { DomainEvent, RecordedEvent } from '../../infra/event-store/event.ts'
import { asId } from '../../infra/ids.ts'
import { transaction } from '../../infra/postgres/pool.ts'
import { organizationsProjection } from '../../projections/organizations/projection.ts'
import {
  countKeys,
  endedGraces,
  findKey,
  findKeyByLookupHash,
  findOrganization,
  findOrganizationBySlug,
  listKeys,
  recipientKeys,
} from '../../projections/organizations/queries.ts'
import type { ApiKeyIssued } from '../../schemas/events.ts'
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts'

const organizationId = asId('org', `org_${'1'.repeat(26)}`)
const keyId = (n: number) => asId('key', `key_${String(n).padStart(26, '0')}`)
let database: TestDatabase
let offset = 0

beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database?.drop())
beforeEach(async () => {
  const build = await liveBuild(database.pool, 'organizations')
  const tables = organizationsProjection.tables.map((table) => `${build?.schema}.${table}`)
  await database.pool.query(`truncate ${tables.join(', ')}`)
})

function recorded(event: DomainEvent, eventId = `evt_${offset}`): RecordedEvent {
  const meta = { eventId, time: 1, organizationId, environment: null }
  return {
    ...event,
    meta,
    value: Buffer.alloc(0),
    position: { topic: 'tidegate.organizations.v1', partition: 0, offset: offset++ },
  }
}

async function apply(...events: RecordedEvent[]): Promise<void> {
  await transaction(database.pool, async (tx) => {
    const build = await liveBuild(tx, 'organizations')
    if (!build) throw new Error('no live build')
    await tx.query(useSchema(build))
    await applyNew(tx, organizationsProjection, events)
  })
}

const created = () =>
  recorded({
    type: 'OrganizationCreated',
    data: { organization_id: organizationId, name: 'Acme', slug: 'acme', created_at: 10 },
  })

function issued(n: number, overrides: Partial<ApiKeyIssued> = {}): RecordedEvent {
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
    ...overrides,
  }
  return recorded({ type: 'ApiKeyIssued', data })
}

const base = { organization_id: organizationId }

test('an organization is created, renamed, suspended and reactivated', async () => {
  await apply(created())
  const first = {
    id: organizationId,
    name: 'Acme',
    slug: 'acme',
    status: 'active',
    secret_limit: null,
    publishable_limit: null,
    capabilities: [],
    created_at: 10,
    updated_at: 10,
  }
  expect(await findOrganization(database.pool, organizationId)).toEqual(first)
  expect(await findOrganizationBySlug(database.pool, 'acme')).toEqual(first)
  expect(await findOrganizationBySlug(database.pool, 'other')).toBeUndefined()
  await apply(
    recorded({ type: 'OrganizationRenamed', data: { ...base, name: 'Acme 2', renamed_at: 20 } }),
    recorded({ type: 'OrganizationSuspended', data: { ...base, suspended_at: 30 } }),
  )
  expect(await findOrganization(database.pool, organizationId)).toEqual({
    ...first,
    name: 'Acme 2',
    status: 'suspended',
    updated_at: 30,
  })
  await apply(recorded({ type: 'OrganizationReactivated', data: { ...base, reactivated_at: 40 } }))
  expect(await findOrganization(database.pool, organizationId)).toMatchObject({
    status: 'active',
    updated_at: 40,
  })
  await apply(recorded({ type: 'OrganizationDeleted', data: { ...base, deleted_at: 50 } }))
  expect(await findOrganization(database.pool, organizationId)).toMatchObject({
    status: 'deleted',
    updated_at: 50,
  })
})

test('limits and capabilities of an organization reach its keys', async () => {
  await apply(
    created(),
    issued(1),
    recorded({
      type: 'OrganizationLimitsChanged',
      data: { ...base, secret_limit: 1200, publishable_limit: null, changed_at: 20 },
    }),
    recorded({
      type: 'OrganizationCapabilityEnabled',
      data: { ...base, capability: 'ip_rotation', enabled_at: 30 },
    }),
  )
  const principal = async () => (await findKeyByLookupHash(database.pool, ['hash1']))?.principal
  expect(await principal()).toMatchObject({ rateLimit: 1200, capabilities: ['ip_rotation'] })
  await apply(
    recorded({
      type: 'OrganizationLimitsChanged',
      data: { ...base, secret_limit: null, publishable_limit: 9000, changed_at: 40 },
    }),
    recorded({
      type: 'OrganizationCapabilityDisabled',
      data: { ...base, capability: 'ip_rotation', disabled_at: 50 },
    }),
  )
  expect(await principal()).toMatchObject({ rateLimit: null, capabilities: [] })
})

test('a repeated event does not bring back what a later one changed', async () => {
  const rename = (name: string, eventId: string) =>
    recorded({ type: 'OrganizationRenamed', data: { ...base, name, renamed_at: 20 } }, eventId)
  await apply(created(), rename('One', 'a'), rename('Two', 'b'), rename('One', 'a'))
  await apply(rename('One', 'a'))
  expect(await findOrganization(database.pool, organizationId)).toMatchObject({ name: 'Two' })
})

test('a key is found by any of its look-up hashes, with what authentication needs', async () => {
  await apply(
    created(),
    issued(1),
    issued(2, {
      type: 'publishable',
      environment: 'test',
      scopes: null,
      secret_hash_sealed: null,
      allowed_origins: ['https://shop.example'],
      display_key: 'pk_test_x',
    }),
    issued(3, {
      type: 'publishable',
      client_target: 'native_ios',
      scopes: null,
      allowed_origins: null,
    }),
    issued(4, {
      type: 'publishable',
      scopes: null,
      allowed_origins: ['https://a.example', 'https://b.example'],
    }),
    issued(5, { type: 'publishable', scopes: null, allowed_origins: ['https://b.example'] }),
  )
  expect(await findKeyByLookupHash(database.pool, ['other', 'hash1'])).toEqual({
    principal: {
      type: 'secret',
      keyId: keyId(1),
      organizationId,
      environment: 'live',
      scopes: ['sessions:read'],
      capabilities: [],
      origins: ['https://a.example', 'https://b.example'],
      rateLimit: null,
    },
    status: 'active',
    graceExpiresAt: null,
    organizationStatus: 'active',
  })
  expect((await findKeyByLookupHash(database.pool, ['hash2']))?.principal).toEqual({
    type: 'publishable',
    shortensAddresses: false,
    keyId: keyId(2),
    organizationId,
    environment: 'test',
    clientTarget: 'browser',
    allowedOrigins: ['https://shop.example'],
    rateLimit: null,
  })
  expect((await findKeyByLookupHash(database.pool, ['hash3']))?.principal).toMatchObject({
    clientTarget: 'native_ios',
    allowedOrigins: [],
  })
  expect(await findKeyByLookupHash(database.pool, ['hash9'])).toBeUndefined()
  expect((await findKey(database.pool, organizationId, keyId(2)))?.display_key).toBe('pk_test_x')
})

test('rotation leaves the old key in grace, revocation ends it, and neither is undone', async () => {
  const rotated = { replacement_key_id: keyId(2), rotated_at: 200, grace_expires_at: 300 }
  await apply(
    created(),
    issued(1),
    issued(2, { replaces_key_id: keyId(1) }),
    recorded({ type: 'ApiKeyRotated', data: { ...base, key_id: keyId(1), ...rotated } }),
  )
  expect(await findKeyByLookupHash(database.pool, ['hash1'])).toMatchObject({
    status: 'rotating',
    graceExpiresAt: 300,
  })
  const recipients = async (now: number) =>
    (await recipientKeys(database.pool, organizationId, 'live', now)).map((key) => key.keyId)
  expect(await recipients(299)).toEqual([keyId(2), keyId(1)])
  expect(await recipients(300)).toEqual([keyId(2)])
  expect(
    (await recipientKeys(database.pool, organizationId, 'live', 0))[0]?.secretHashSealed,
  ).toEqual(Buffer.from([0, 1, 255, 2]))
  expect(await recipientKeys(database.pool, organizationId, 'test', 0)).toEqual([])
  expect(await countKeys(database.pool, organizationId)).toEqual({
    active: 1,
    secret: { live: 2, test: 0 },
  })
  await apply(
    recorded({
      type: 'ApiKeyRevoked',
      data: { ...base, key_id: keyId(1), revoked_at: 250, reason: 'requested' },
    }),
    recorded({ type: 'ApiKeyRotated', data: { ...base, key_id: keyId(1), ...rotated } }),
  )
  expect(await findKeyByLookupHash(database.pool, ['hash1'])).toMatchObject({ status: 'revoked' })
  expect(await recipients(0)).toEqual([keyId(2)])
})

test('a key changes its name, origins and scopes', async () => {
  await apply(
    created(),
    issued(1),
    issued(2, { type: 'publishable', scopes: null, allowed_origins: [], secret_hash_sealed: null }),
    recorded({
      type: 'ApiKeyRenamed',
      data: { ...base, key_id: keyId(1), name: 'New', renamed_at: 1 },
    }),
    recorded({
      type: 'ApiKeyScopesChanged',
      data: { ...base, key_id: keyId(1), scopes: ['*'], changed_at: 2 },
    }),
    recorded({
      type: 'ApiKeyOriginsChanged',
      data: { ...base, key_id: keyId(2), allowed_origins: ['https://a.example'], changed_at: 3 },
    }),
  )
  expect(await findKey(database.pool, organizationId, keyId(1))).toMatchObject({
    name: 'New',
    scopes: ['*'],
  })
  expect(await findKey(database.pool, organizationId, keyId(2))).toMatchObject({
    allowed_origins: ['https://a.example'],
    scopes: null,
  })
  expect(await findKey(database.pool, `org_${'2'.repeat(26)}`, keyId(1))).toBeUndefined()
})

test('keys are listed newest first, page by page', async () => {
  await apply(created(), ...[1, 2, 3].map((n) => issued(n)))
  const first = await listKeys(database.pool, organizationId, { limit: 2 })
  expect(first.rows.map((row) => row.id)).toEqual([keyId(3), keyId(2)])
  expect(first.hasMore).toBe(true)
  const second = await listKeys(database.pool, organizationId, {
    limit: 2,
    after: { createdAt: 102, id: keyId(2) },
  })
  expect(second.rows.map((row) => row.id)).toEqual([keyId(1)])
  expect(second.hasMore).toBe(false)
})

test('rotating keys are found once their grace is over, longest ago first', async () => {
  const rotatedUntil = (n: number, grace_expires_at: number) =>
    recorded({
      type: 'ApiKeyRotated',
      data: {
        ...base,
        key_id: keyId(n),
        replacement_key_id: keyId(9),
        rotated_at: 1,
        grace_expires_at,
      },
    })
  const revoked = recorded({
    type: 'ApiKeyRevoked',
    data: { ...base, key_id: keyId(4), revoked_at: 2, reason: 'requested' },
  })
  const rotations = [
    rotatedUntil(1, 300),
    rotatedUntil(2, 200),
    rotatedUntil(3, 301),
    rotatedUntil(4, 100),
  ]
  await apply(created(), ...[1, 2, 3, 4, 5].map((n) => issued(n)), ...rotations, revoked)
  const ended = async (limit: number) =>
    (await endedGraces(database.pool, { now: 300, limit })).map((key) => key.keyId)
  expect(await ended(10)).toEqual([keyId(2), keyId(1)])
  expect(await ended(1)).toEqual([keyId(2)])
})
