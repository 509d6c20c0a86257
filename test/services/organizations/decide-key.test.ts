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
  graceMs,
  type IssueApiKey,
  type KeyState,
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

describe('a key is issued', () => {
  const keyId = asId('key', `key_${'2'.repeat(26)}`)
  const material = {
    lookup_hash: 'h',
    secret_hash_sealed: Buffer.from('s'),
    key_preview: 'p',
    display_key: null,
  }
  const state: Parameters<typeof decideKeyIssue>[0] = {
    organization,
    counts: noKeys,
    existing: undefined,
  }
  const narrow = ['sessions:read', 'sessions:update', 'fingerprints:read']

  function command(request: Partial<KeyRequest> = {}, by: KeyCaller = 'operator'): IssueApiKey {
    const spec = completeKeyRequest({ name: 'Server', environment: 'live', ...request })
    return { organizationId, keyId, spec, material, by, now: 9 }
  }

  test('given an active organization, when a key is issued, then it is', () => {
    const [decision, ...rest] = decideKeyIssue(
      state,
      command({ type: 'secret', scopes: ['*', '*'] }),
    )
    expect(rest).toEqual([])
    expect(decision?.event).toEqual({
      type: 'ApiKeyIssued',
      data: {
        organization_id: organizationId,
        key_id: keyId,
        name: 'Server',
        type: 'secret',
        environment: 'live',
        client_target: 'browser',
        allowed_origins: null,
        scopes: ['*'],
        ...material,
        replaces_key_id: null,
        issued_at: 9,
      },
    })
    expect(decision?.meta).toMatchObject({ time: 9, organizationId, environment: 'live' })
  })

  test('given no organization, or one that is not active, then no key is issued', () => {
    expect(
      refusal(() => decideKeyIssue({ ...state, organization: undefined }, command())).code,
    ).toBe('request.not_found')
    for (const status of ['suspended', 'deleted'] as const) {
      const inactive = { ...state, organization: { ...organization, status } }
      expect(refusal(() => decideKeyIssue(inactive, command())).code).toBe(
        'auth.organization_inactive',
      )
    }
  })

  test('given as many keys as there can be, then no more are issued', () => {
    const many = { active: 100, secret: { live: 0, test: 0 } }
    expect(refusal(() => decideKeyIssue({ ...state, counts: many }, command()))).toMatchObject({
      code: 'request.conflict',
      message: expect.stringMatching(/100 active keys: revoke one/),
      details: { next_action: 'contact_support' },
    })
    const secrets = { active: 0, secret: { live: 256, test: 0 } }
    expect(refusal(() => decideKeyIssue({ ...state, counts: secrets }, command())).code).toBe(
      'request.conflict',
    )
    expect(
      decideKeyIssue({ ...state, counts: secrets }, command({ environment: 'test' })),
    ).toHaveLength(1)
    expect(
      decideKeyIssue({ ...state, counts: secrets }, command({ type: 'publishable' })),
    ).toHaveLength(1)
  })

  test('given a calling key, then it gives what it has, a test key to test keys only; * gives all', () => {
    const by = { environment: 'live', scopes: ['api_keys:manage', 'sessions:read'] } as const
    const secret = (...scopes: string[]) => ({ type: 'secret', scopes }) as const
    const message = (request: Partial<KeyRequest>, caller: KeyCaller = by) =>
      refusal(() => decideKeyIssue(state, command(request, caller))).message
    const lacks = (scope: string) => `The API key lacks the scope ${scope}.`
    expect(message(secret('*'))).toBe(lacks('*'))
    expect(message(secret('sessions:read', 'sessions:list'))).toBe(lacks('sessions:list'))
    expect(message({})).toBe(lacks('sessions:update'))
    expect(message(secret('*'), { ...by, environment: 'test' })).toBe('environment: not_allowed')
    for (const request of [
      secret('sessions:read', 'api_keys:manage'),
      { type: 'publishable' } as const,
    ])
      expect(decideKeyIssue(state, command(request, by))).toHaveLength(1)
    expect(decideKeyIssue(state, command({}, { ...by, scopes: [] }))).toHaveLength(1)
    expect(decideKeyIssue(state, command(secret('*'), allScopes))).toHaveLength(1)
    for (const environment of ['live', 'test'] as const)
      expect(
        decideKeyIssue(state, command({ environment: 'test' }, { ...allScopes, environment })),
      ).toHaveLength(1)
    expect(decideKeyIssue(state, command({ environment: 'test' }, 'operator'))).toHaveLength(1)
  })

  test('given the key of the command, then the command is a repetition and does nothing', () => {
    const full = { active: 100, secret: { live: 256, test: 0 } }
    expect(decideKeyIssue({ ...state, counts: full, existing: secretKey }, command())).toEqual([])
  })

  test('a name alone makes a secret key with the narrow scopes', () => {
    expect(command().spec).toMatchObject({ type: 'secret', scopes: narrow, allowed_origins: null })
  })

  test('allowed origins or a client target alone make a publishable key', () => {
    expect(command({ allowed_origins: ['https://Shop.example:443/'] }).spec).toMatchObject({
      type: 'publishable',
      scopes: null,
      allowed_origins: ['https://shop.example'],
    })
    expect(command({ client_target: 'native_ios' }).spec).toMatchObject({
      type: 'publishable',
      client_target: 'native_ios',
      allowed_origins: [],
    })
  })

  test.each<[string, Partial<KeyRequest>]>([
    ['type', { scopes: ['sessions:read'] }],
    ['scopes', { type: 'secret' }],
    ['allowed_origins', { type: 'secret', scopes: ['*'], allowed_origins: [] }],
    ['scopes', { type: 'secret', scopes: [] }],
    ['scopes.1', { type: 'secret', scopes: ['sessions:read', 'organizations:manage'] }],
    ['scopes', { type: 'publishable', scopes: ['*'] }],
    ['allowed_origins', { type: 'secret', scopes: ['*'], allowed_origins: ['https://a.example'] }],
    [
      'allowed_origins',
      { client_target: 'native_android', allowed_origins: ['https://a.example'] },
    ],
    ['client_target', { type: 'secret', scopes: ['*'], client_target: 'native_ios' }],
    ['allowed_origins', { allowed_origins: Array(51).fill('https://a.example') }],
    ['allowed_origins.1', { allowed_origins: ['https://a.example', 'http://a.example'] }],
    ['name', { name: 'x'.repeat(101) }],
    ['name', { name: '😀'.repeat(101) }],
    ['name', { name: 'half \ud83d' }],
  ])('a bad %s is refused: %j', (name, request) => {
    const error = refusal(() => command(request))
    expect(error).toMatchObject({
      code: 'request.validation_failed',
      details: { fields: [{ name }], parameter_set: 'api_key_create' },
    })
  })

  test('a name is as long as its characters, whatever they take to store', () => {
    for (const name of ['😀'.repeat(51), '😀'.repeat(100)])
      expect(command({ name }).spec.name).toBe(name)
  })

  test('what an origin may be is said as it is for the environment', () => {
    const expected = (environment: 'live' | 'test') =>
      refusal(() => command({ environment, allowed_origins: ['x'] })).details?.fields?.[0]?.expected
    expect(expected('live')).toBe('an https origin or https://*.host')
    expect(expected('test')).toBe('an http or https origin or https://*.host')
  })

  test('what a refused field held is not repeated: it may be a key', () => {
    const pasted = `sk_live_${'0'.repeat(38)}`
    const refusals = [
      refusal(() => command({ allowed_origins: [pasted] })),
      refusal(() => command({ type: 'secret', scopes: [pasted] })),
      refusal(() => command({ name: `${pasted}\n${pasted.repeat(3)}` })),
    ]
    for (const { message, details } of refusals)
      expect(JSON.stringify([message, details])).not.toContain('0000')
  })
})

describe('a key is changed', () => {
  const command = { by: allScopes, changeId: 'evt_change', now: 9 }
  const secret: KeyState = { organization, key: secretKey }
  const publishable: KeyState = { organization, key: publishableKey }
  const about = { organization_id: organizationId, key_id: secretKey.id }
  const events = (decisions: ReturnType<typeof decideKeyUpdate>) =>
    decisions.map(({ event }) => event)

  test('given a secret key, when its name and scopes change, then there is an event for each', () => {
    const decisions = decideKeyUpdate(secret, { ...command, name: ' New ', scopes: ['*', '*'] })
    expect(events(decisions)).toEqual([
      { type: 'ApiKeyRenamed', data: { ...about, name: 'New', renamed_at: 9 } },
      { type: 'ApiKeyScopesChanged', data: { ...about, scopes: ['*'], changed_at: 9 } },
    ])
    expect(decisions[0]?.meta).toMatchObject({ organizationId, environment: 'live', time: 9 })
    expect(new Set(decisions.map(({ meta }) => meta.eventId)).size).toBe(2)
  })

  test('given a publishable key, when its origins change, then they are stored normalised', () => {
    const allowed_origins = ['https://Shop.example:443', 'https://*.Shop.example']
    expect(events(decideKeyUpdate(publishable, { ...command, allowed_origins }))).toEqual([
      {
        type: 'ApiKeyOriginsChanged',
        data: {
          ...about,
          key_id: publishableKey.id,
          allowed_origins: ['https://shop.example', 'https://*.shop.example'],
          changed_at: 9,
        },
      },
    ])
    expect(events(decideKeyUpdate(publishable, { ...command, allowed_origins: [] }))).toMatchObject(
      [{ data: { allowed_origins: [] } }],
    )
  })

  test('given what it has already, then nothing happens', () => {
    expect(
      decideKeyUpdate(secret, { ...command, name: 'Server', scopes: ['sessions:read'] }),
    ).toEqual([])
    const same = { ...command, allowed_origins: ['https://SHOP.example/'] }
    expect(decideKeyUpdate(publishable, same)).toEqual([])
  })

  test('given a rotating key, then it can still be changed', () => {
    const rotating = { ...secretKey, status: 'rotating' } as const
    expect(
      decideKeyUpdate({ organization, key: rotating }, { ...command, name: 'Old' }),
    ).toHaveLength(1)
  })

  test('given no key or a revoked one, then it is not found, whatever is asked', () => {
    for (const key of [undefined, { ...secretKey, status: 'revoked' } as const]) {
      const wrong = { ...command, name: '', allowed_origins: ['https://a.example'] }
      expect(refusal(() => decideKeyUpdate({ organization, key }, wrong)).code).toBe(
        'request.not_found',
      )
    }
  })

  test('given an organization that is not active, then the operator can change its keys, they cannot', () => {
    const state = {
      organization: { ...organization, status: 'suspended' },
      key: secretKey,
    } as const
    const change = { ...command, name: 'New' }
    expect(refusal(() => decideKeyUpdate(state, change)).code).toBe('auth.organization_inactive')
    expect(decideKeyUpdate(state, { ...change, by: 'operator' })).toHaveLength(1)
  })

  test('given a calling key, then it changes no key that may more, gives nothing more, and a test key no live one', () => {
    const by = { environment: 'live', scopes: ['api_keys:manage', 'sessions:read'] } as const
    const change = (key: ApiKeyRow, changes: object) => () =>
      decideKeyUpdate({ organization, key }, { ...command, by, ...changes })
    const mighty = { ...secretKey, scopes: ['*'] }
    expect(refusal(change(mighty, { name: 'New' })).code).toBe('auth.insufficient_scope')
    expect(refusal(change(mighty, { scopes: ['sessions:read'] })).code).toBe(
      'auth.insufficient_scope',
    )
    expect(refusal(change(secretKey, { scopes: ['*'] })).code).toBe('auth.insufficient_scope')
    expect(refusal(change({ ...secretKey, scopes: [] }, { name: 'New' })).code).toBe(
      'auth.insufficient_scope',
    )
    const byTest = { by: { ...by, environment: 'test' }, name: '' }
    expect(refusal(change(mighty, byTest)).code).toBe('request.not_found')
    for (const caller of [by, byTest.by])
      expect(
        change({ ...secretKey, environment: 'test' }, { by: caller, name: 'New' })(),
      ).toHaveLength(1)
    expect(change(secretKey, { name: 'New', scopes: ['api_keys:manage'] })()).toHaveLength(2)
    expect(change(publishableKey, { name: 'New' })()).toHaveLength(1)
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
    expect(
      refusal(() => decideKeyUpdate({ organization, key }, { ...command, ...changes })),
    ).toMatchObject({
      code: 'request.validation_failed',
      details: { fields: [{ name }], parameter_set: 'api_key_update' },
    })
  })
})

describe('a key is rotated and revoked', () => {
  const replacementId = asId('key', `key_${'9'.repeat(26)}`)
  const material = {
    lookup_hash: 'new',
    secret_hash_sealed: Buffer.from('new'),
    key_preview: 'sk_live_9999...9999',
    display_key: null,
  }
  const command = { replacementId, material, by: allScopes, now: 1000 }
  const state = { organization, key: secretKey, counts: noKeys, existing: undefined }
  const about = { organization_id: organizationId, key_id: secretKey.id }
  const revocation = { by: { environment: 'live', scopes: [] }, now: 9 } as const
  const events = (decisions: ReturnType<typeof decideKeyRotation>) =>
    decisions.map(({ event }) => event)
  const rotating = {
    ...secretKey,
    status: 'rotating',
    rotated_at: 1,
    grace_expires_at: 500,
  } as const
  const revoked = { ...secretKey, status: 'revoked' } as const

  test('given a key in use, when it is rotated, then there is one like it and 24 hours of grace', () => {
    const { type, environment, name, client_target, allowed_origins, scopes } = secretKey
    const same = { type, environment, name, client_target, allowed_origins, scopes }
    const replacement = { ...about, key_id: replacementId, ...same, ...material }
    expect(events(decideKeyRotation(state, command))).toEqual([
      {
        type: 'ApiKeyIssued',
        data: { ...replacement, replaces_key_id: secretKey.id, issued_at: 1000 },
      },
      {
        type: 'ApiKeyRotated',
        data: {
          ...about,
          replacement_key_id: replacementId,
          rotated_at: 1000,
          grace_expires_at: 1000 + 24 * 3600 * 1000,
        },
      },
    ])
  })

  test('a native key keeps its client target', () => {
    const native: ApiKeyRow = {
      ...publishableKey,
      client_target: 'native_android',
      allowed_origins: [],
    }
    expect(events(decideKeyRotation({ ...state, key: native }, command))[0]).toMatchObject({
      data: {
        type: 'publishable',
        client_target: 'native_android',
        allowed_origins: [],
        scopes: null,
      },
    })
  })

  test('given a rotating key, then it is refused; given none or a revoked one, then it is not found', () => {
    expect(refusal(() => decideKeyRotation({ ...state, key: rotating }, command)).code).toBe(
      'request.conflict',
    )
    for (const key of [undefined, revoked]) {
      expect(refusal(() => decideKeyRotation({ ...state, key }, command)).code).toBe(
        'request.not_found',
      )
    }
  })

  test('given a calling key, then it rotates none that may more, not even again, and a test key no live one', () => {
    const by = { environment: 'live', scopes: ['api_keys:manage'] } as const
    const existing = { ...secretKey, id: replacementId }
    const refused = (changes: object, caller: KeyCaller = by) =>
      refusal(() => decideKeyRotation({ ...state, ...changes }, { ...command, by: caller })).code
    expect(refused({})).toBe('auth.insufficient_scope')
    expect(refused({ existing })).toBe('auth.insufficient_scope')
    const byTest = { ...by, environment: 'test' } as const
    expect(refused({}, byTest)).toBe('request.not_found')
    expect(refused({ existing }, byTest)).toBe('request.not_found')
    const managing = { ...secretKey, scopes: ['api_keys:manage'] }
    for (const key of [publishableKey, managing, { ...managing, environment: 'test' as const }])
      expect(decideKeyRotation({ ...state, key }, { ...command, by })).toHaveLength(2)
  })

  test('given the replacement, then the command is a repetition: only what is missing of it is added', () => {
    const existing = { ...secretKey, id: replacementId }
    const [, rotated] = decideKeyRotation(state, command)
    expect(decideKeyRotation({ ...state, existing, key: rotating }, command)).toEqual([])
    expect(decideKeyRotation({ ...state, existing, key: revoked }, command)).toEqual([])
    expect(decideKeyRotation({ ...state, existing }, command)).toEqual([rotated])
  })

  test('given as many secret keys as a token has recipients, then none is rotated in that environment', () => {
    const counts = { active: 100, secret: { live: 256, test: 256 } }
    expect(refusal(() => decideKeyRotation({ ...state, counts }, command)).code).toBe(
      'request.conflict',
    )
    expect(decideKeyRotation({ ...state, counts, key: publishableKey }, command)).toHaveLength(2)
    const test = { ...counts, secret: { live: 255, test: 256 } }
    expect(decideKeyRotation({ ...state, counts: test }, command)).toHaveLength(2)
  })

  test('given an organization that is not active, then no key is rotated', () => {
    const suspended = { ...state, organization: { ...organization, status: 'suspended' } as const }
    expect(refusal(() => decideKeyRotation(suspended, command)).code).toBe(
      'auth.organization_inactive',
    )
  })

  test('given an active or rotating key, when it is revoked, then it is, once', () => {
    for (const key of [secretKey, rotating]) {
      expect(events(decideKeyRevocation({ organization, key }, revocation))).toEqual([
        { type: 'ApiKeyRevoked', data: { ...about, revoked_at: 9, reason: 'requested' } },
      ])
    }
    expect(decideKeyRevocation({ organization, key: revoked }, revocation)).toEqual([])
  })

  test('given a live key, then no test key revokes it; a live key revokes those of both', () => {
    const by = { environment: 'test', scopes: ['*'] } as const
    const revoke = (key: ApiKeyRow, caller: KeyCaller) =>
      decideKeyRevocation({ organization, key }, { by: caller, now: 9 })
    expect(refusal(() => revoke(secretKey, by)).code).toBe('request.not_found')
    const ofTest = { ...secretKey, environment: 'test' } as const
    for (const caller of [by, revocation.by]) expect(revoke(ofTest, caller)).toHaveLength(1)
  })

  test('given no key, or an organization that is not active, then its key cannot revoke', () => {
    expect(
      refusal(() => decideKeyRevocation({ organization, key: undefined }, revocation)).code,
    ).toBe('request.not_found')
    const state = { organization: { ...organization, status: 'deleted' }, key: secretKey } as const
    expect(refusal(() => decideKeyRevocation(state, revocation)).code).toBe(
      'auth.organization_inactive',
    )
    expect(decideKeyRevocation(state, { ...revocation, by: 'operator' })).toHaveLength(1)
  })

  test('given a rotating key, when its grace is over, then it is revoked as of then', () => {
    expect(decideGraceEnd(rotating, 499)).toEqual([])
    const [decision] = decideGraceEnd(rotating, 500)
    expect(decision?.event).toEqual({
      type: 'ApiKeyRevoked',
      data: { ...about, revoked_at: 500, reason: 'grace_ended' },
    })
    expect(decideGraceEnd(rotating, 900)[0]).toMatchObject({
      event: { data: { revoked_at: 500 } },
      meta: { eventId: decision?.meta.eventId, time: 900 },
    })
  })

  test('given any other key, then its grace does not end', () => {
    for (const key of [undefined, secretKey, revoked]) expect(decideGraceEnd(key, 1e15)).toEqual([])
    expect(graceMs).toBe(86_400_000)
  })
})
