import { describe, expect, test } from 'vitest'
import { asId } from '../../../infra/ids.ts'
import type { ApiKeyRow } from '../../../projections/organizations/tables.ts'
import type { KeyCaller } from '../../../services/organizations/authority.ts'
import {
  completeKeyRequest,
  type KeyRequest,
} from '../../../services/organizations/checked-input.ts'
import {
  decideGraceEnd,
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
} from './given.ts'

/** A key that may give everything in the environment of the given keys. */
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

describe('a key is issued', () => {
  const keyId = asId('key', `key_${'2'.repeat(26)}`)
  const state = { organization, counts: noKeys, existing: undefined }

  function command(request: Partial<KeyRequest> = {}, by: KeyCaller = 'operator'): IssueApiKey {
    const spec = completeKeyRequest({ name: 'Server', environment: 'live', ...request })
    return { organizationId, keyId, spec, material, by, now: 9 }
  }
  const secret = (...scopes: string[]) => ({ type: 'secret', scopes }) as const

  test('given an active organization, when a key is issued, then it is', () => {
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
      { type: 'ApiKeyIssued', data: { ...data, replaces_key_id: null, issued_at: 9 } },
    ])
    expect(decisions[0]?.meta).toMatchObject({ time: 9, organizationId, environment: 'live' })
  })

  test('given no organization, or one that is not active, then no key is issued', () => {
    const issue = (organization: (typeof state)['organization'] | undefined) => () =>
      decideKeyIssue({ ...state, organization }, command())
    expect(codeOf(issue(undefined))).toBe('request.not_found')
    for (const status of ['suspended', 'deleted'] as const)
      expect(codeOf(issue({ ...organization, status }))).toBe('auth.organization_inactive')
  })

  test('given as many keys as there can be, then no more are issued', () => {
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
      'environment is not allowed: test, as the caller',
    ],
  ])('given a calling key, then it does not give %s', (_, request, caller, message) => {
    expect(refusal(() => decideKeyIssue(state, command(request, caller))).message).toBe(message)
  })

  test.each<[string, Partial<KeyRequest>, KeyCaller]>([
    ['its own scopes', secret('sessions:read', 'api_keys:manage'), by],
    ['a publishable key', { type: 'publishable' }, by],
    ['the default scopes, where it has none of its own', {}, { ...by, scopes: [] }],
    ['anything with *', secret('*'), allScopes],
    ['a test key by a live one', { environment: 'test' }, allScopes],
    ['a test key by a test key', { environment: 'test' }, { ...allScopes, environment: 'test' }],
    ['anything as the operator', { environment: 'test' }, 'operator'],
  ])('given a caller, then it gives %s', (_, request, caller) => {
    expect(decideKeyIssue(state, command(request, caller))).toHaveLength(1)
  })

  test('given the key of the command, then the command is a repetition and does nothing', () => {
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
  ])('a name with %j makes %j', (request, spec) => {
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
  ])('a bad %s is refused: %j', (name, request) => {
    expect(refusal(() => command(request))).toMatchObject({
      code: 'request.validation_failed',
      details: { fields: [{ name }], parameter_set: 'api_key_create' },
    })
  })

  test('a name is as long as its characters, whatever they take to store', () => {
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

  test('what a refused field held is not repeated: it may be a key', () => {
    const pasted = `sk_live_${'0'.repeat(38)}`
    const name = `${pasted}\n${pasted.repeat(3)}`
    for (const request of [{ allowed_origins: [pasted] }, secret(pasted), { name }]) {
      const { message, details } = refusal(() => command(request))
      expect(JSON.stringify([message, details])).not.toContain('0000')
    }
  })
})

describe('a key is changed', () => {
  const update = (key: ApiKeyRow | undefined, changes: object, state = { organization }) =>
    decideKeyUpdate(
      { ...state, key },
      { by: allScopes, changeId: 'evt_change', now: 9, ...changes },
    )
  const updateCode = (...args: Parameters<typeof update>) => codeOf(() => update(...args))

  test('given a secret key, when its name and scopes change, then there is an event for each', () => {
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
  ])('given a publishable key, when its origins become %j, then %j are stored', (given, stored) => {
    const data = { ...about, key_id: publishableKey.id, allowed_origins: stored, changed_at: 9 }
    expect(events(update(publishableKey, { allowed_origins: given }))).toEqual([
      { type: 'ApiKeyOriginsChanged', data },
    ])
  })

  test('given what it has already, then nothing happens', () => {
    expect(update(secretKey, { name: 'Server', scopes: ['sessions:read'] })).toEqual([])
    expect(update(publishableKey, { allowed_origins: ['https://SHOP.example/'] })).toEqual([])
  })

  test('given a rotating key, then it can still be changed', () => {
    expect(update(rotating, { name: 'Old' })).toHaveLength(1)
  })

  test.each([[undefined], [revoked]])(
    'given %j, then it is not found, whatever is asked',
    (key) => {
      const wrong = { name: '', allowed_origins: ['https://a.example'] }
      expect(updateCode(key, wrong)).toBe('request.not_found')
    },
  )

  test('given an organization that is not active, then the operator can change its keys, they cannot', () => {
    const state = { organization: suspended }
    expect(updateCode(secretKey, { name: 'New' }, state)).toBe('auth.organization_inactive')
    expect(update(secretKey, { name: 'New', by: 'operator' }, state)).toHaveLength(1)
  })

  const by = { environment: 'live', scopes: ['api_keys:manage', 'sessions:read'] } as const
  const byTest = { ...by, environment: 'test' } as const
  const mighty = { ...secretKey, scopes: ['*'] }
  test.each<[string, ApiKeyRow, object, string]>([
    ['a key that may more', mighty, { name: 'New' }, 'auth.insufficient_scope'],
    ['even to less', mighty, { scopes: ['sessions:read'] }, 'auth.insufficient_scope'],
    ['a key to more', secretKey, { scopes: ['*'] }, 'auth.insufficient_scope'],
    ['a key by default', { ...secretKey, scopes: [] }, { name: 'A' }, 'auth.insufficient_scope'],
    ['a live key by a test key', mighty, { by: byTest, name: '' }, 'request.not_found'],
  ])('given a calling key, then it does not change %s', (_, key, changes, code) => {
    expect(updateCode(key, { by, ...changes })).toBe(code)
  })

  test.each<[string, ApiKeyRow, object, number]>([
    ['one within its scopes', secretKey, { name: 'New', scopes: ['api_keys:manage'] }, 2],
    ['a publishable one', publishableKey, { name: 'New' }, 1],
    ['a test key', testKey, { name: 'New' }, 1],
    ['a test key, as a test key', testKey, { by: byTest, name: 'New' }, 1],
  ])('given a calling key, then it changes %s', (_, key, changes, count) => {
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
  ])('a bad %s is refused', (name, key, changes) => {
    expect(refusal(() => update(key, changes))).toMatchObject({
      code: 'request.validation_failed',
      details: { fields: [{ name }], parameter_set: 'api_key_update' },
    })
  })
})

describe('a key is rotated', () => {
  const replacementId = asId('key', `key_${'9'.repeat(26)}`)
  const replacement = { ...secretKey, id: replacementId }
  const command = { replacementId, material, by: allScopes, now: 1000 }
  const state = { organization, key: secretKey, counts: noKeys, existing: undefined }
  const rotate = (changes: object = {}, by: KeyCaller = allScopes) =>
    decideKeyRotation({ ...state, ...changes }, { ...command, by })

  test.each<ApiKeyRow>([
    secretKey,
    { ...publishableKey, client_target: 'native_android', allowed_origins: [] },
  ])('given a $type key in use, then there is one like it and 24 hours of grace', (key) => {
    const { type, environment, name, client_target, allowed_origins, scopes } = key
    const same = { type, environment, name, client_target, allowed_origins, scopes }
    const ids = { ...about, key_id: replacementId, replaces_key_id: key.id }
    const grace = { rotated_at: 1000, grace_expires_at: 1000 + 86_400_000 }
    expect(events(rotate({ key }))).toEqual([
      { type: 'ApiKeyIssued', data: { ...ids, ...same, ...material, issued_at: 1000 } },
      {
        type: 'ApiKeyRotated',
        data: { ...about, key_id: key.id, replacement_key_id: replacementId, ...grace },
      },
    ])
  })

  const by = { environment: 'live', scopes: ['api_keys:manage'] } as const
  const byTest = { ...by, environment: 'test' } as const
  const counts = { active: 100, secret: { live: 256, test: 256 } }
  test.each<[string, object, KeyCaller, string]>([
    ['a rotating key', { key: rotating }, allScopes, 'request.conflict'],
    ['no key', { key: undefined }, allScopes, 'request.not_found'],
    ['a revoked one', { key: revoked }, allScopes, 'request.not_found'],
    ['one that may more than the caller', {}, by, 'auth.insufficient_scope'],
    ['that one again', { existing: replacement }, by, 'auth.insufficient_scope'],
    ['a live one of a test key', {}, byTest, 'request.not_found'],
    ['that one again of a test key', { existing: replacement }, byTest, 'request.not_found'],
    ['one of as many as a token has recipients', { counts }, allScopes, 'request.conflict'],
    [
      'one of a suspended organization',
      { organization: suspended },
      allScopes,
      'auth.organization_inactive',
    ],
  ])('given %s, then it is refused', (_, changes, caller, code) => {
    expect(codeOf(() => rotate(changes, caller))).toBe(code)
  })

  const managing = { ...secretKey, scopes: ['api_keys:manage'] }
  test.each<[string, object]>([
    ['a publishable key', { key: publishableKey }],
    ['a key within the scopes of the caller', { key: managing }],
    ['a test key of a live one', { key: { ...managing, environment: 'test' } }],
    ['as many publishable keys as there are', { key: publishableKey, counts }],
    [
      'enough secret keys of the other environment',
      { key: managing, counts: { ...counts, secret: { live: 255, test: 256 } } },
    ],
  ])('given %s, then it is rotated', (_, changes) => {
    expect(rotate(changes, by)).toHaveLength(2)
  })

  test('given the replacement, then the command is a repetition: only what is missing of it is added', () => {
    const [, rotated] = rotate()
    const existing = replacement
    expect(rotate({ existing, key: rotating })).toEqual([])
    expect(rotate({ existing, key: revoked })).toEqual([])
    expect(rotate({ existing })).toEqual([rotated])
  })
})

describe('a key is revoked', () => {
  const byLive = { environment: 'live', scopes: [] } as const
  const byTest = { environment: 'test', scopes: ['*'] } as const
  const revoke = (key: ApiKeyRow | undefined, by: KeyCaller = byLive, state = { organization }) =>
    decideKeyRevocation({ ...state, key }, { by, now: 9 })

  test('given an active or rotating key, then it is, once', () => {
    for (const key of [secretKey, rotating])
      expect(events(revoke(key))).toEqual([
        { type: 'ApiKeyRevoked', data: { ...about, revoked_at: 9, reason: 'requested' } },
      ])
    expect(revoke(revoked)).toEqual([])
  })

  test('given a live key, then no test key revokes it; a live key revokes those of both', () => {
    expect(codeOf(() => revoke(secretKey, byTest))).toBe('request.not_found')
    for (const caller of [byTest, byLive]) expect(revoke(testKey, caller)).toHaveLength(1)
  })

  test('given no key, or an organization that is not active, then its key cannot revoke', () => {
    expect(codeOf(() => revoke(undefined))).toBe('request.not_found')
    const inactive = () => revoke(secretKey, byLive, { organization: suspended })
    expect(codeOf(inactive)).toBe('auth.organization_inactive')
    expect(revoke(secretKey, 'operator', { organization: suspended })).toHaveLength(1)
  })

  test('given a rotating key, when its grace is over, then it is revoked as of then', () => {
    expect(decideGraceEnd(rotating, 499)).toEqual([])
    const [decision] = decideGraceEnd(rotating, 500)
    expect(decision?.event).toEqual({
      type: 'ApiKeyRevoked',
      data: { ...about, revoked_at: 500, reason: 'grace_ended' },
    })
    expect(decideGraceEnd(rotating, 900)).toMatchObject([
      {
        event: { data: { revoked_at: 500 } },
        meta: { eventId: decision?.meta.eventId, time: 900 },
      },
    ])
    for (const key of [undefined, secretKey, revoked]) expect(decideGraceEnd(key, 1e15)).toEqual([])
  })
})
