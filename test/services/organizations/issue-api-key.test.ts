import { expect, test } from 'vitest'
import { asId } from '../../../infra/ids.ts'
import {
  type IssueApiKey,
  type IssueState,
  issueApiKey,
} from '../../../services/organizations/issue-api-key.ts'
import { completeKeyRequest, type KeyRequest } from '../../../services/organizations/key-request.ts'
import { noKeys, organization, organizationId, refusal, secretKey } from './given.ts'

const keyId = asId('key', `key_${'2'.repeat(26)}`)
const material = {
  lookup_hash: 'h',
  secret_hash_sealed: Buffer.from('s'),
  key_preview: 'p',
  display_key: null,
}
const state: IssueState = { organization, counts: noKeys, existing: undefined }
const narrow = ['sessions:read', 'sessions:update', 'fingerprints:read']

function command(request: Partial<KeyRequest> = {}): IssueApiKey {
  const spec = completeKeyRequest({ name: 'Server', environment: 'live', ...request })
  return { organizationId, keyId, spec, material, now: 9 }
}

test('given an active organization, when a key is issued, then it is', () => {
  const [decision, ...rest] = issueApiKey(state, command({ type: 'secret', scopes: ['*', '*'] }))
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
  expect(refusal(() => issueApiKey({ ...state, organization: undefined }, command())).code).toBe(
    'request.not_found',
  )
  for (const status of ['suspended', 'deleted'] as const) {
    const inactive = { ...state, organization: { ...organization, status } }
    expect(refusal(() => issueApiKey(inactive, command())).code).toBe('auth.organization_inactive')
  }
})

test('given as many keys as there can be, then no more are issued', () => {
  const many = { active: 100, secret: { live: 0, test: 0 } }
  expect(refusal(() => issueApiKey({ ...state, counts: many }, command())).code).toBe('request.conflict')
  const secrets = { active: 0, secret: { live: 256, test: 0 } }
  expect(refusal(() => issueApiKey({ ...state, counts: secrets }, command())).code).toBe('request.conflict')
  expect(issueApiKey({ ...state, counts: secrets }, command({ environment: 'test' }))).toHaveLength(1)
  expect(issueApiKey({ ...state, counts: secrets }, command({ type: 'publishable' }))).toHaveLength(1)
})

test('given the key of the command, then the command is a repetition and does nothing', () => {
  const full = { active: 100, secret: { live: 256, test: 0 } }
  expect(issueApiKey({ ...state, counts: full, existing: secretKey }, command())).toEqual([])
})

test('a name alone makes a secret key with the narrow scopes', () => {
  expect(command().spec).toMatchObject({ type: 'secret', scopes: narrow, allowed_origins: null })
})

test('allowed origins or a client target alone make a publishable key', () => {
  expect(command({ allowedOrigins: ['https://Shop.example:443/'] }).spec).toMatchObject({
    type: 'publishable',
    scopes: null,
    allowed_origins: ['https://shop.example'],
  })
  expect(command({ clientTarget: 'native_ios' }).spec).toMatchObject({
    type: 'publishable',
    client_target: 'native_ios',
    allowed_origins: [],
  })
})

test.each<[string, Partial<KeyRequest>]>([
  ['type', { scopes: ['sessions:read'] }],
  ['scopes', { type: 'secret' }],
  ['allowed_origins', { type: 'secret', scopes: ['*'], allowedOrigins: [] }],
  ['scopes', { type: 'secret', scopes: [] }],
  ['scopes.1', { type: 'secret', scopes: ['sessions:read', 'organizations:manage'] }],
  ['scopes', { type: 'publishable', scopes: ['*'] }],
  ['allowed_origins', { type: 'secret', scopes: ['*'], allowedOrigins: ['https://a.example'] }],
  ['allowed_origins', { clientTarget: 'native_android', allowedOrigins: ['https://a.example'] }],
  ['client_target', { type: 'secret', scopes: ['*'], clientTarget: 'native_ios' }],
  ['allowed_origins', { allowedOrigins: Array(51).fill('https://a.example') }],
  ['allowed_origins.1', { allowedOrigins: ['https://a.example', 'http://a.example'] }],
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
  for (const name of ['😀'.repeat(51), '😀'.repeat(100)]) expect(command({ name }).spec.name).toBe(name)
})

test('what an origin may be is said as it is for the environment', () => {
  const expected = (environment: 'live' | 'test') =>
    refusal(() => command({ environment, allowedOrigins: ['x'] })).details?.fields?.[0]?.expected
  expect(expected('live')).toBe('an https origin or https://*.host')
  expect(expected('test')).toBe('an http or https origin or https://*.host')
})

test('what a refused field held is not repeated: it may be a key', () => {
  const pasted = `sk_live_${'0'.repeat(38)}`
  const refusals = [
    refusal(() => command({ allowedOrigins: [pasted] })),
    refusal(() => command({ type: 'secret', scopes: [pasted] })),
    refusal(() => command({ name: `${pasted}\n${pasted.repeat(3)}` })),
  ]
  for (const { message, details } of refusals)
    expect(JSON.stringify([message, details])).not.toContain('0000')
})
