import { describe, expect, test } from 'vitest'
import { asId } from '../../../infra/ids.ts'
import type { ApiKeyRow } from '../../../projections/organizations/tables.ts'
import type { KeyCaller } from '../../../services/organizations/authority.ts'
import {
  completeKeyRequest,
  type KeyRequest,
} from '../../../services/organizations/checked-input.ts'
import {
  decideKeyEnd,
  decideKeyIssue,
  decideKeyRevocation,
  decideKeyRotation,
  decideKeyUpdate,
  type IssueApiKey,
} from '../../../services/organizations/decide-key.ts'
import {
  noKeys,
  organization,
  organizationId,
  publishableKey,
  refusal,
  secretKey,
} from './fixtures.ts'

/** A caller that can grant every scope in the environment of the keys under test. */
const allScopes = { environment: 'live', scopes: ['*'] } as const
const suspended = { ...organization, status: 'suspended' } as const
const rotating = {
  ...secretKey,
  status: 'rotating',
  rotated_at: 1,
  grace_expires_at: 500,
} as const
const revoked = { ...secretKey, status: 'revoked' } as const
const testKey = { ...secretKey, environment: 'test' } as const
const about = { organization_id: organizationId, key_id: secretKey.id }
const material = {
  lookup_hash: 'new',
  secret_hash_sealed: Buffer.from('new'),
  key_preview: 'sk_live_9999...9999',
  display_key: null,
}

const codeOf = (work: () => unknown) => refusal(work).code
const events = (decisions: ReturnType<typeof decideKeyUpdate>) =>
  decisions.map(({ event }) => event)

describe('decideKeyIssue', () => {
  const keyId = asId('key', `key_${'2'.repeat(26)}`)
  const state = { organization, counts: noKeys, existing: undefined }

  function command(request: Partial<KeyRequest> = {}, by: KeyCaller = 'operator'): IssueApiKey {
    const spec = completeKeyRequest({ name: 'Server', environment: 'live', ...request })
    return { organizationId, keyId, spec, material, by, now: 9 }
  }
  const secret = (...scopes: string[]) => ({ type: 'secret', scopes }) as const

  test('issues a key for an active organization', () => {
    const decisions = decideKeyIssue(state, command(secret('*', '*')))
    const spec = {
      name: 'Server',
      type: 'secret',
      environment: 'live',
      client_target: 'browser',
      allowed_origins: null,
      scopes: ['*'],
    }
    const data = { ...about, key_id: keyId, ...spec, ...material }
    expect(events(decisions)).toEqual([
      {
        type: 'ApiKeyIssued',
        data: { ...data, replaces_key_id: null, issued_at: 9, expires_at: null },
      },
    ])
    expect(decisions[0]?.meta).toMatchObject({ time: 9, organizationId, environment: 'live' })
  })

  test('throws unless the organization exists and is active', () => {
    const issue = (organization: (typeof state)['organization'] | undefined) => () =>
      decideKeyIssue({ ...state, organization }, command())
    expect(codeOf(issue(undefined))).toBe('request.not_found')
    for (const status of ['suspended', 'deleted'] as const)
      expect(codeOf(issue({ ...organization, status }))).toBe('auth.organization_inactive')
  })

  test('throws 409 at the maximum number of keys', () => {
    const many = { ...state, counts: { active: 100, secret: { live: 0, test: 0 } } }
    expect(refusal(() => decideKeyIssue(many, command()))).toMatchObject({
      code: 'request.conflict',
      message: expect.stringMatching(/100 active keys: revoke an unused key/),
      details: { next_action: 'contact_support' },
    })
    const secrets = { ...state, counts: { active: 0, secret: { live: 256, test: 0 } } }
    expect(codeOf(() => decideKeyIssue(secrets, command()))).toBe('request.conflict')
    for (const request of [{ environment: 'test' }, { type: 'publishable' }] as const)
      expect(decideKeyIssue(secrets, command(request))).toHaveLength(1)
  })

  const by = { environment: 'live', scopes: ['api_keys:manage', 'sessions:read'] } as const
  const lacks = (scope: string) => `The API key lacks the scope ${scope}.`
  test.each<[string, Partial<KeyRequest>, KeyCaller, string]>([
    ['*', secret('*'), by, lacks('*')],
    ['a scope it lacks', secret('sessions:read', 'sessions:list'), by, lacks('sessions:list')],
    ['the default scopes', {}, by, lacks('sessions:update')],
    [
      'a live key',
      secret('*'),
      { ...by, environment: 'test' },
      'environment is not allowed: test, because the caller is a test key',
    ],
  ])('does not let a key grant %s', (_, request, caller, message) => {
    expect(refusal(() => decideKeyIssue(state, command(request, caller))).message).toBe(message)
  })

  test.each<[string, Partial<KeyRequest>, KeyCaller]>([
    ['its own scopes', secret('sessions:read', 'api_keys:manage'), by],
    ['a publishable key', { type: 'publishable' }, by],
    ['the default scopes to a key without scopes', {}, { ...by, scopes: [] }],
    ['anything with *', secret('*'), allScopes],
    ['a test key as a live key', { environment: 'test' }, allScopes],
    ['a test key as a test key', { environment: 'test' }, { ...allScopes, environment: 'test' }],
    ['anything as the operator', { environment: 'test' }, 'operator'],
  ])('lets a caller grant %s', (_, request, caller) => {
    expect(decideKeyIssue(state, command(request, caller))).toHaveLength(1)
  })

  const day = 86_400_000
  test.each<[string, number | null, number | null | undefined, number | null]>([
    ['never', null, undefined, null],
    ['at the requested time', null, 10, 10],
    ['at the maximum by default', 30, undefined, 9 + 30 * day],
    ['at a time within the maximum', 30, 9 + 30 * day, 9 + 30 * day],
  ])('lets a key expire %s', (_, max_key_days, requested, expires_at) => {
    const decisions = decideKeyIssue(
      { ...state, organization: { ...organization, max_key_days } },
      command({ expires_at: requested }),
    )
    expect(events(decisions)).toMatchObject([{ data: { expires_at } }])
  })

  test.each<[string, number | null, number | null, string]>([
    ['in the past', null, 9, 'a time in the future'],
    ['after the maximum', 30, 10 + 30 * day, 'within 30 days'],
    ['never, with a maximum', 30, null, 'within 30 days'],
  ])('does not let a key expire %s', (_, max_key_days, expires_at, message) => {
    const limited = { ...state, organization: { ...organization, max_key_days } }
    const error = refusal(() => decideKeyIssue(limited, command({ expires_at })))
    expect(error.message).toContain(message)
    expect(error.details).toMatchObject({ fields: [{ name: 'expires_at' }] })
  })

  test('returns no event if the key of the command exists', () => {
    const full = { active: 100, secret: { live: 256, test: 0 } }
    expect(decideKeyIssue({ ...state, counts: full, existing: secretKey }, command())).toEqual([])
  })

  test.each<[Partial<KeyRequest>, object]>([
    [
      {},
      {
        type: 'secret',
        scopes: ['sessions:read', 'sessions:update', 'fingerprints:read'],
        allowed_origins: null,
      },
    ],
    [
      { allowed_origins: ['https://Shop.example:443/'] },
      { type: 'publishable', scopes: null, allowed_origins: ['https://shop.example'] },
    ],
    [
      { client_target: 'native_ios' },
      { type: 'publishable', client_target: 'native_ios', allowed_origins: [] },
    ],
  ])('completes a name with %j to %j', (request, spec) => {
    expect(command(request).spec).toMatchObject(spec)
  })

  const origin = ['https://a.example']
  test.each<[string, Partial<KeyRequest>]>([
    ['type', { scopes: ['sessions:read'] }],
    ['scopes', { type: 'secret' }],
    ['scopes', secret()],
    ['scopes.1', secret('sessions:read', 'organizations:manage')],
    ['scopes', { type: 'publishable', scopes: ['*'] }],
    ['allowed_origins', { ...secret('*'), allowed_origins: [] }],
    ['allowed_origins', { client_target: 'native_android', allowed_origins: origin }],
    ['client_target', { ...secret('*'), client_target: 'native_ios' }],
    ['allowed_origins', { allowed_origins: Array(51).fill('https://a.example') }],
    ['allowed_origins.1', { allowed_origins: [...origin, 'http://a.example'] }],
    ['name', { name: 'x'.repeat(101) }],
    ['name', { name: '😀'.repeat(101) }],
    ['name', { name: 'half \ud83d' }],
  ])('rejects an invalid %s: %j', (name, request) => {
    expect(refusal(() => command(request))).toMatchObject({
      code: 'request.validation_failed',
      details: { fields: [{ name }], parameter_set: 'api_key_create' },
    })
  })

  test('counts the characters of a name, not its bytes', () => {
    const name = '😀'.repeat(100)
    expect(command({ name }).spec.name).toBe(name)
  })

  test.each([
    ['live', 'an https origin or https://*.host'],
    ['test', 'an http or https origin or https://*.host'],
  ] as const)('a refused origin of a %s key is told: %s', (environment, expected) => {
    const { details } = refusal(() => command({ environment, allowed_origins: ['x'] }))
    expect(details?.fields).toMatchObject([{ expected }])
  })

  test('errors do not repeat invalid values, which may be keys', () => {
    const pasted = `sk_live_${'0'.repeat(38)}`
    const name = `${pasted}\n${pasted.repeat(3)}`
    for (const request of [{ allowed_origins: [pasted] }, secret(pasted), { name }]) {
      const { message, details } = refusal(() => command(request))
      expect(JSON.stringify([message, details])).not.toContain('0000')
    }
  })
})

describe('decideKeyUpdate', () => {
  const update = (key: ApiKeyRow | undefined, changes: object, state = { organization }) =>
    decideKeyUpdate(
      { ...state, key },
      { by: allScopes, changeId: 'evt_change', now: 9, ...changes },
    )
  const updateCode = (...args: Parameters<typeof update>) => codeOf(() => update(...args))

  test('accepts an unchanged expiry beyond a maximum that was set later', () => {
    const limited = { organization: { ...organization, max_key_days: 1 } }
    expect(update(secretKey, { name: 'New', expires_at: null }, limited)).toHaveLength(1)
    expect(updateCode(secretKey, { expires_at: 1e15 }, limited)).toBe('request.validation_failed')
  })

  test('returns an event each for a new name and new scopes', () => {
    const decisions = update(secretKey, { name: ' New ', scopes: ['*', '*'] })
    expect(events(decisions)).toEqual([
      { type: 'ApiKeyRenamed', data: { ...about, name: 'New', renamed_at: 9 } },
      { type: 'ApiKeyScopesChanged', data: { ...about, scopes: ['*'], changed_at: 9 } },
    ])
    expect(decisions[0]?.meta).toMatchObject({ organizationId, environment: 'live', time: 9 })
    expect(new Set(decisions.map(({ meta }) => meta.eventId)).size).toBe(2)
  })

  test.each([
    [
      ['https://Shop.example:443', 'https://*.Shop.example'],
      ['https://shop.example', 'https://*.shop.example'],
    ],
    [[], []],
  ])('normalizes the origins %j to %j', (given, stored) => {
    const data = { ...about, key_id: publishableKey.id, allowed_origins: stored, changed_at: 9 }
    expect(events(update(publishableKey, { allowed_origins: given }))).toEqual([
      { type: 'ApiKeyOriginsChanged', data },
    ])
  })

  test('returns no event if nothing changes', () => {
    expect(update(secretKey, { name: 'Server', scopes: ['sessions:read'] })).toEqual([])
    expect(update(publishableKey, { allowed_origins: ['https://SHOP.example/'] })).toEqual([])
  })

  test('changes a rotating key', () => {
    expect(update(rotating, { name: 'Old' })).toHaveLength(1)
  })

  test.each([[undefined], [revoked]])('throws 404 for %j, whatever the change', (key) => {
    const wrong = { name: '', allowed_origins: ['https://a.example'] }
    expect(updateCode(key, wrong)).toBe('request.not_found')
  })

  test('lets the operator change keys of an inactive organization, but not its own keys', () => {
    const state = { organization: suspended }
    expect(updateCode(secretKey, { name: 'New' }, state)).toBe('auth.organization_inactive')
    expect(update(secretKey, { name: 'New', by: 'operator' }, state)).toHaveLength(1)
  })

  const by = { environment: 'live', scopes: ['api_keys:manage', 'sessions:read'] } as const
  const byTest = { ...by, environment: 'test' } as const
  const strong = { ...secretKey, scopes: ['*'] }
  test.each<[string, ApiKeyRow, object, string]>([
    ['with more scopes', strong, { name: 'New' }, 'auth.insufficient_scope'],
    ['with more scopes to fewer', strong, { scopes: ['sessions:read'] }, 'auth.insufficient_scope'],
    ['to more scopes than it has', secretKey, { scopes: ['*'] }, 'auth.insufficient_scope'],
    ['without any scope', { ...secretKey, scopes: [] }, { name: 'A' }, 'auth.insufficient_scope'],
    ['of live as a test key', strong, { by: byTest, name: '' }, 'request.not_found'],
  ])('does not let a key change a key %s', (_, key, changes, code) => {
    expect(updateCode(key, { by, ...changes })).toBe(code)
  })

  test.each<[string, ApiKeyRow, object, number]>([
    ['a key within its scopes', secretKey, { name: 'New', scopes: ['api_keys:manage'] }, 2],
    ['a publishable key', publishableKey, { name: 'New' }, 1],
    ['a test key', testKey, { name: 'New' }, 1],
    ['a test key, as a test key', testKey, { by: byTest, name: 'New' }, 1],
  ])('lets a key change %s', (_, key, changes, count) => {
    expect(update(key, { by, ...changes })).toHaveLength(count)
  })

  const native: ApiKeyRow = { ...publishableKey, client_target: 'native_ios', allowed_origins: [] }
  test.each([
    ['allowed_origins', secretKey, { allowed_origins: [] }],
    ['allowed_origins', native, { allowed_origins: ['https://a.example'] }],
    ['allowed_origins.0', publishableKey, { allowed_origins: ['http://a.example'] }],
    ['allowed_origins', publishableKey, { allowed_origins: Array(51).fill('https://a.example') }],
    ['scopes', publishableKey, { scopes: ['*'] }],
    ['scopes', secretKey, { scopes: [] }],
    ['scopes.1', secretKey, { scopes: ['*', 'organizations:manage'] }],
    ['name', secretKey, { name: 'x'.repeat(101) }],
  ])('rejects an invalid %s', (name, key, changes) => {
    expect(refusal(() => update(key, changes))).toMatchObject({
      code: 'request.validation_failed',
      details: { fields: [{ name }], parameter_set: 'api_key_update' },
    })
  })
})

describe('decideKeyRotation', () => {
  const replacementId = asId('key', `key_${'9'.repeat(26)}`)
  const replacement = { ...secretKey, id: replacementId }
  const command = { replacementId, material, by: allScopes, now: 1000 }
  const state = { organization, key: secretKey, counts: noKeys, existing: undefined }
  const rotate = (changes: object = {}, by: KeyCaller = allScopes) =>
    decideKeyRotation({ ...state, ...changes }, { ...command, by })

  test.each<ApiKeyRow>([
    secretKey,
    { ...publishableKey, client_target: 'native_android', allowed_origins: [] },
  ])('issues a replacement for a $type key, with a grace period of 24 hours', (key) => {
    const { type, environment, name, client_target, allowed_origins, scopes } = key
    const same = { type, environment, name, client_target, allowed_origins, scopes }
    const ids = { ...about, key_id: replacementId, replaces_key_id: key.id }
    const grace = { rotated_at: 1000, grace_expires_at: 1000 + 86_400_000 }
    expect(events(rotate({ key }))).toEqual([
      {
        type: 'ApiKeyIssued',
        data: { ...ids, ...same, ...material, issued_at: 1000, expires_at: null },
      },
      {
        type: 'ApiKeyRotated',
        data: { ...about, key_id: key.id, replacement_key_id: replacementId, ...grace },
      },
    ])
  })

  test('gives the replacement the lifetime of the key, from the rotation on', () => {
    const key = { ...secretKey, created_at: 100, expires_at: 1700 }
    expect(events(rotate({ key }))[0]?.data).toMatchObject({ expires_at: 2600 })
  })

  test.each([null, 1e12])('limits a lifetime until %j to the maximum', (expires_at) => {
    const limited = { ...organization, max_key_days: 1 }
    const [issued] = events(rotate({ organization: limited, key: { ...secretKey, expires_at } }))
    expect(issued?.data).toMatchObject({ expires_at: 1000 + 86_400_000 })
  })

  test('throws 404 for a key that expired', () => {
    expect(codeOf(() => rotate({ key: { ...secretKey, expires_at: 1000 } }))).toBe(
      'request.not_found',
    )
  })

  const by = { environment: 'live', scopes: ['api_keys:manage'] } as const
  const byTest = { ...by, environment: 'test' } as const
  const counts = { active: 100, secret: { live: 256, test: 256 } }
  test.each<[string, object, KeyCaller, string]>([
    ['a rotating key', { key: rotating }, allScopes, 'request.conflict'],
    ['no key', { key: undefined }, allScopes, 'request.not_found'],
    ['a revoked key', { key: revoked }, allScopes, 'request.not_found'],
    ['a key with more scopes than the caller', {}, by, 'auth.insufficient_scope'],
    [
      'a repeat for a key with more scopes',
      { existing: replacement },
      by,
      'auth.insufficient_scope',
    ],
    ['a live key if the caller is a test key', {}, byTest, 'request.not_found'],
    ['a repeat by a test key', { existing: replacement }, byTest, 'request.not_found'],
    ['too many secret keys', { counts }, allScopes, 'request.conflict'],
    [
      'a key of a suspended organization',
      { organization: suspended },
      allScopes,
      'auth.organization_inactive',
    ],
  ])('throws for %s', (_, changes, caller, code) => {
    expect(codeOf(() => rotate(changes, caller))).toBe(code)
  })

  const managing = { ...secretKey, scopes: ['api_keys:manage'] }
  test.each<[string, object]>([
    ['a publishable key', { key: publishableKey }],
    ['a key within the scopes of the caller', { key: managing }],
    ['a test key if the caller is a live key', { key: { ...managing, environment: 'test' } }],
    ['a publishable key at the limit', { key: publishableKey, counts }],
    [
      'the maximum number of secret keys in the other environment',
      { key: managing, counts: { ...counts, secret: { live: 255, test: 256 } } },
    ],
  ])('rotates with %s', (_, changes) => {
    expect(rotate(changes, by)).toHaveLength(2)
  })

  test('returns only the missing events of a repeated command', () => {
    const [, rotated] = rotate()
    const existing = replacement
    expect(rotate({ existing, key: rotating })).toEqual([])
    expect(rotate({ existing, key: revoked })).toEqual([])
    expect(rotate({ existing })).toEqual([rotated])
  })
})

describe('decideKeyRevocation and decideKeyEnd', () => {
  const byLive = { environment: 'live', scopes: [] } as const
  const byTest = { environment: 'test', scopes: ['*'] } as const
  const revoke = (key: ApiKeyRow | undefined, by: KeyCaller = byLive, state = { organization }) =>
    decideKeyRevocation({ ...state, key }, { by, now: 9 })

  test('revoke an active or rotating key once', () => {
    for (const key of [secretKey, rotating])
      expect(events(revoke(key))).toEqual([
        { type: 'ApiKeyRevoked', data: { ...about, revoked_at: 9, reason: 'requested' } },
      ])
    expect(revoke(revoked)).toEqual([])
  })

  test('let a live key revoke keys of both environments, and a test key only test keys', () => {
    expect(codeOf(() => revoke(secretKey, byTest))).toBe('request.not_found')
    for (const caller of [byTest, byLive]) expect(revoke(testKey, caller)).toHaveLength(1)
  })

  test('throw without a key, or for a key of an inactive organization', () => {
    expect(codeOf(() => revoke(undefined))).toBe('request.not_found')
    const inactive = () => revoke(secretKey, byLive, { organization: suspended })
    expect(codeOf(inactive)).toBe('auth.organization_inactive')
    expect(revoke(secretKey, 'operator', { organization: suspended })).toHaveLength(1)
  })

  test('revoke a rotating key at the end of its grace period', () => {
    expect(decideKeyEnd(rotating, 499)).toEqual([])
    const [decision] = decideKeyEnd(rotating, 500)
    expect(decision?.event).toEqual({
      type: 'ApiKeyRevoked',
      data: { ...about, revoked_at: 500, reason: 'grace_ended' },
    })
    expect(decideKeyEnd(rotating, 900)).toMatchObject([
      {
        event: { data: { revoked_at: 500 } },
        meta: { eventId: decision?.meta.eventId, time: 900 },
      },
    ])
    for (const key of [undefined, secretKey, revoked]) expect(decideKeyEnd(key, 1e15)).toEqual([])
  })

  test.each<[string, ApiKeyRow, { revoked_at: number; reason: string }]>([
    ['an expired key', { ...secretKey, expires_at: 400 }, { revoked_at: 400, reason: 'expired' }],
    [
      'a rotating key that expires first',
      { ...rotating, expires_at: 400 },
      { revoked_at: 400, reason: 'expired' },
    ],
    [
      'a rotating key whose grace period ends first',
      { ...rotating, expires_at: 600 },
      { revoked_at: 500, reason: 'grace_ended' },
    ],
  ])('revoke %s', (_, key, revocation) => {
    expect(decideKeyEnd(key, revocation.revoked_at - 1)).toEqual([])
    expect(decideKeyEnd(key, 900)).toMatchObject([{ event: { data: revocation } }])
  })
})
