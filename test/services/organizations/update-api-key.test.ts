import { expect, test } from 'vitest'
import type { ApiKeyRow } from '../../../projections/organizations/tables.ts'
import type { KeyState } from '../../../services/organizations/key-state.ts'
import { updateApiKey } from '../../../services/organizations/update-api-key.ts'
import { organization, organizationId, publishableKey, refusal, secretKey } from './given.ts'

const command = { by: 'key', changeId: 'evt_change', now: 9 } as const
const secret: KeyState = { organization, key: secretKey }
const publishable: KeyState = { organization, key: publishableKey }
const about = { organization_id: organizationId, key_id: secretKey.id }
const events = (decisions: ReturnType<typeof updateApiKey>) => decisions.map(({ event }) => event)

test('given a secret key, when its name and scopes change, then there is an event for each', () => {
  const decisions = updateApiKey(secret, { ...command, name: ' New ', scopes: ['*', '*'] })
  expect(events(decisions)).toEqual([
    { type: 'ApiKeyRenamed', data: { ...about, name: 'New', renamed_at: 9 } },
    { type: 'ApiKeyScopesChanged', data: { ...about, scopes: ['*'], changed_at: 9 } },
  ])
  expect(decisions[0]?.meta).toMatchObject({ organizationId, environment: 'live', time: 9 })
  expect(new Set(decisions.map(({ meta }) => meta.eventId)).size).toBe(2)
})

test('given a publishable key, when its origins change, then they are stored normalised', () => {
  const allowedOrigins = ['https://Shop.example:443', 'https://*.Shop.example']
  expect(events(updateApiKey(publishable, { ...command, allowedOrigins }))).toEqual([
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
  expect(events(updateApiKey(publishable, { ...command, allowedOrigins: [] }))).toMatchObject([
    { data: { allowed_origins: [] } },
  ])
})

test('given what it has already, then nothing happens', () => {
  expect(updateApiKey(secret, { ...command, name: 'Server', scopes: ['sessions:read'] })).toEqual([])
  const same = { ...command, allowedOrigins: ['https://SHOP.example/'] }
  expect(updateApiKey(publishable, same)).toEqual([])
})

test('given a rotating key, then it can still be changed', () => {
  const rotating = { ...secretKey, status: 'rotating' } as const
  expect(updateApiKey({ organization, key: rotating }, { ...command, name: 'Old' })).toHaveLength(1)
})

test('given no key or a revoked one, then it is not found, whatever is asked', () => {
  for (const key of [undefined, { ...secretKey, status: 'revoked' } as const]) {
    const wrong = { ...command, name: '', allowedOrigins: ['https://a.example'] }
    expect(refusal(() => updateApiKey({ organization, key }, wrong)).code).toBe('request.not_found')
  }
})

test('given an organization that is not active, then the operator can change its keys, they cannot', () => {
  const state = { organization: { ...organization, status: 'suspended' }, key: secretKey } as const
  const change = { ...command, name: 'New' }
  expect(refusal(() => updateApiKey(state, change)).code).toBe('auth.organization_inactive')
  expect(updateApiKey(state, { ...change, by: 'operator' })).toHaveLength(1)
})

const native: ApiKeyRow = { ...publishableKey, client_target: 'native_ios', allowed_origins: [] }
test.each([
  ['allowed_origins', secretKey, { allowedOrigins: [] }],
  ['allowed_origins', native, { allowedOrigins: ['https://a.example'] }],
  ['allowed_origins.0', publishableKey, { allowedOrigins: ['http://a.example'] }],
  ['allowed_origins', publishableKey, { allowedOrigins: Array(51).fill('https://a.example') }],
  ['scopes', publishableKey, { scopes: ['*'] }],
  ['scopes', secretKey, { scopes: [] }],
  ['scopes.1', secretKey, { scopes: ['*', 'organizations:manage'] }],
  ['name', secretKey, { name: 'x'.repeat(101) }],
])('a bad %s is refused', (name, key, changes) => {
  expect(refusal(() => updateApiKey({ organization, key }, { ...command, ...changes }))).toMatchObject({
    code: 'request.validation_failed',
    details: { fields: [{ name }], parameter_set: 'api_key_update' },
  })
})
