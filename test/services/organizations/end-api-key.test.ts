import { expect, test } from 'vitest'
import { asId } from '../../../infra/ids.ts'
import type { ApiKeyRow } from '../../../projections/organizations/tables.ts'
import { endGrace, revokeApiKey } from '../../../services/organizations/revoke-api-key.ts'
import { graceMs, rotateApiKey } from '../../../services/organizations/rotate-api-key.ts'
import { noKeys, organization, organizationId, publishableKey, refusal, secretKey } from './given.ts'

const replacementId = asId('key', `key_${'9'.repeat(26)}`)
const material = {
  lookup_hash: 'new',
  secret_hash_sealed: Buffer.from('new'),
  key_preview: 'sk_live_9999...9999',
  display_key: null,
}
const command = { replacementId, material, now: 1000 }
const state = { organization, key: secretKey, counts: noKeys, existing: undefined }
const about = { organization_id: organizationId, key_id: secretKey.id }
const revocation = { by: 'key', now: 9 } as const
const events = (decisions: ReturnType<typeof rotateApiKey>) => decisions.map(({ event }) => event)
const rotating = { ...secretKey, status: 'rotating', rotated_at: 1, grace_expires_at: 500 } as const
const revoked = { ...secretKey, status: 'revoked' } as const

test('given a key in use, when it is rotated, then there is one like it and 24 hours of grace', () => {
  const { type, environment, name, client_target, allowed_origins, scopes } = secretKey
  const same = { type, environment, name, client_target, allowed_origins, scopes }
  const replacement = { ...about, key_id: replacementId, ...same, ...material }
  expect(events(rotateApiKey(state, command))).toEqual([
    { type: 'ApiKeyIssued', data: { ...replacement, replaces_key_id: secretKey.id, issued_at: 1000 } },
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
  const native: ApiKeyRow = { ...publishableKey, client_target: 'native_android', allowed_origins: [] }
  expect(events(rotateApiKey({ ...state, key: native }, command))[0]).toMatchObject({
    data: { type: 'publishable', client_target: 'native_android', allowed_origins: [], scopes: null },
  })
})

test('given a rotating key, then it is refused; given none or a revoked one, then it is not found', () => {
  expect(refusal(() => rotateApiKey({ ...state, key: rotating }, command)).code).toBe('request.conflict')
  for (const key of [undefined, revoked]) {
    expect(refusal(() => rotateApiKey({ ...state, key }, command)).code).toBe('request.not_found')
  }
})

test('given the replacement, then the command is a repetition: only what is missing of it is added', () => {
  const existing = { ...secretKey, id: replacementId }
  const [, rotated] = rotateApiKey(state, command)
  expect(rotateApiKey({ ...state, existing, key: rotating }, command)).toEqual([])
  expect(rotateApiKey({ ...state, existing, key: revoked }, command)).toEqual([])
  expect(rotateApiKey({ ...state, existing }, command)).toEqual([rotated])
})

test('given as many secret keys as a token has recipients, then none is rotated in that environment', () => {
  const counts = { active: 100, secret: { live: 256, test: 256 } }
  expect(refusal(() => rotateApiKey({ ...state, counts }, command)).code).toBe('request.conflict')
  expect(rotateApiKey({ ...state, counts, key: publishableKey }, command)).toHaveLength(2)
  const test = { ...counts, secret: { live: 255, test: 256 } }
  expect(rotateApiKey({ ...state, counts: test }, command)).toHaveLength(2)
})

test('given an organization that is not active, then no key is rotated', () => {
  const suspended = { ...state, organization: { ...organization, status: 'suspended' } as const }
  expect(refusal(() => rotateApiKey(suspended, command)).code).toBe('auth.organization_inactive')
})

test('given an active or rotating key, when it is revoked, then it is, once', () => {
  for (const key of [secretKey, rotating]) {
    expect(events(revokeApiKey({ organization, key }, revocation))).toEqual([
      { type: 'ApiKeyRevoked', data: { ...about, revoked_at: 9, reason: 'requested' } },
    ])
  }
  expect(revokeApiKey({ organization, key: revoked }, revocation)).toEqual([])
})

test('given no key, or an organization that is not active, then its key cannot revoke', () => {
  expect(refusal(() => revokeApiKey({ organization, key: undefined }, revocation)).code).toBe(
    'request.not_found',
  )
  const state = { organization: { ...organization, status: 'deleted' }, key: secretKey } as const
  expect(refusal(() => revokeApiKey(state, revocation)).code).toBe('auth.organization_inactive')
  expect(revokeApiKey(state, { ...revocation, by: 'operator' })).toHaveLength(1)
})

test('given a rotating key, when its grace is over, then it is revoked as of then', () => {
  expect(endGrace(rotating, { now: 499 })).toEqual([])
  const [decision] = endGrace(rotating, { now: 500 })
  expect(decision?.event).toEqual({
    type: 'ApiKeyRevoked',
    data: { ...about, revoked_at: 500, reason: 'grace_ended' },
  })
  expect(endGrace(rotating, { now: 900 })[0]).toMatchObject({
    event: { data: { revoked_at: 500 } },
    meta: { eventId: decision?.meta.eventId, time: 900 },
  })
})

test('given any other key, then its grace does not end', () => {
  for (const key of [undefined, secretKey, revoked]) expect(endGrace(key, { now: 1e15 })).toEqual([])
  expect(graceMs).toBe(86_400_000)
})
