import { beforeEach, describe, expect, test } from 'vitest'
import { scopes } from '../../../infra/access/principal.ts'
import {
  type AuthApp,
  organizationId,
  otherOrganization,
  type Send,
  start,
  startAuthApp,
} from './auth-app.ts'

let app: AuthApp
beforeEach(async () => {
  app = await startAuthApp()
})

/** The error code, or undefined when the request went through. */
async function get(request: Send): Promise<string | undefined> {
  const { status, headers, code } = await app.send({ url: '/rest', ...request })
  if (status === 401) expect(headers['www-authenticate']).toBe('Bearer')
  return code
}

describe('the bearer', () => {
  test('a missing header is its own error', async () => {
    expect(await get({})).toBe('auth.missing_api_key')
    expect(await get({ headers: { authorization: '' } })).toBe('auth.missing_api_key')
  })

  test.each(['Bearer', 'Bearer ', 'Basic abc', 'Bearer a b', 'Bearer agt_1', 'Bearer sk_live_x'])(
    '%s is refused without a look-up',
    async (authorization) => {
      expect(await get({ headers: { authorization } })).toBe('auth.invalid_api_key')
      expect(app.asked.lookups).toBe(0)
    },
  )

  test('the scheme is case-insensitive', async () => {
    const key = app.secret()
    for (const scheme of ['Bearer', 'bearer', 'BEARER'])
      expect(await get({ headers: { authorization: `${scheme} ${key}` } })).toBeUndefined()
  })

  test('no refusal repeats the key', async () => {
    const refused = [
      { key: app.unknown() },
      { key: `${app.unknown().slice(0, -1)}!` },
      { key: app.secret(['*'], { status: 'revoked' }) },
      { key: app.secret([]) },
      { key: app.publishable() },
      { key: app.secret(), url: '/collect' },
      { key: app.secret(), url: `/v1/organizations/${otherOrganization}` },
    ]
    for (const { key, url = '/rest' } of refused) {
      const { status, json, headers } = await app.send({ key, url })
      expect(status).toBeGreaterThanOrEqual(401)
      expect(JSON.stringify({ json, headers })).not.toContain(key.slice(8, 30))
    }
  })
})

describe('the key', () => {
  test('a revoked key is invalid', async () => {
    expect(await get({ key: app.secret(['*'], { status: 'revoked' }) })).toBe(
      'auth.invalid_api_key',
    )
  })

  test('a rotating key works until its grace ends, also while cached', async () => {
    const key = app.secret(['*'], { status: 'rotating', graceExpiresAt: start + 5000 })
    app.now.ms = start + 4999
    expect(await get({ key })).toBeUndefined()
    app.now.ms = start + 5000
    expect(await get({ key })).toBe('auth.invalid_api_key')
    expect(app.asked.lookups).toBe(1)
  })

  test.each(['suspended', 'deleted'] as const)('a %s organization is inactive', async (status) => {
    const key = app.secret(['*'], { organizationStatus: status })
    expect(await get({ key })).toBe('auth.organization_inactive')
    expect(await get({ key, url: '/collect' })).toBe('auth.organization_inactive')
  })

  test('a key that does not work says so before its organization does', async () => {
    const key = app.secret(['*'], { status: 'revoked', organizationStatus: 'deleted' })
    expect(await get({ key })).toBe('auth.invalid_api_key')
  })

  test('there is no way from one key type to the other', async () => {
    expect(await get({ key: app.publishable() })).toBe('auth.secret_key_required')
    expect(await get({ key: app.secret(), url: '/collect' })).toBe('auth.secret_key_not_allowed')
  })

  test.each(['native_ios', 'native_android'] as const)(
    'a %s key works on collect only, and never from a browser',
    async (clientTarget) => {
      const key = app.publishable({ clientTarget })
      const headers = { origin: 'https://a.example' }
      expect(await get({ key })).toBe('auth.native_key_not_allowed')
      expect(await get({ key, url: '/collect' })).toBeUndefined()
      expect(await get({ key, url: '/collect', headers })).toBe('auth.native_key_not_allowed')
    },
  )
})

describe('scopes', () => {
  test('the missing one is named', async () => {
    const { status, json } = await app.send({ url: '/rest', key: app.secret(['sessions:read']) })
    expect([status, json.error.code]).toEqual([403, 'auth.insufficient_scope'])
    expect(json.error.message).toContain('sessions:list')
  })

  test('the exact scope and * are enough, and no other one', async () => {
    for (const scope of scopes) {
      const works = scope === '*' || scope === 'sessions:list'
      expect(await get({ key: app.secret([scope]) })).toBe(
        works ? undefined : 'auth.insufficient_scope',
      )
    }
  })

  test('no stored scopes means the narrow default', async () => {
    const key = app.secret([])
    expect(await get({ key })).toBe('auth.insufficient_scope')
    expect(await get({ key, url: '/read' })).toBeUndefined()
  })

  test('a removed scope grants nothing', async () => {
    const key = app.secret(['organizations:manage'])
    for (const url of ['/read', `/v1/organizations/${organizationId}`])
      expect(await get({ key, url })).toBe('auth.insufficient_scope')
  })
})

describe('paths of an organization', () => {
  const own = `/v1/organizations/${organizationId}`

  test("work for the organization's own keys", async () => {
    expect(await get({ key: app.secret(['organizations:read']), url: own })).toBeUndefined()
  })

  test.each([
    otherOrganization,
    'org_zzzzzzzzzzzzzzzzzzzzzzzzzz',
    organizationId.toUpperCase(),
    `${organizationId}%20`,
    'org_',
    'x',
    '%00',
    'toString',
  ])('%s is denied, whether or not it exists', async (id) => {
    const url = `/v1/organizations/${id}`
    expect(await get({ key: app.secret(), url })).toBe('auth.organization_access_denied')
  })

  test('the scope is asked for first', async () => {
    const url = `/v1/organizations/${otherOrganization}`
    expect(await get({ key: app.secret(['sessions:list']), url })).toBe('auth.insufficient_scope')
  })

  test('a publishable key is refused for its type', async () => {
    expect(await get({ key: app.publishable(), url: own })).toBe('auth.secret_key_required')
  })
})

test('a key with allowed origins works from those only, and secret keys from anywhere', async () => {
  const key = app.publishable({ allowedOrigins: ['https://shop.example'] })
  const from = (origin?: string) =>
    get({ key, url: '/collect', ...(origin && { headers: { origin } }) })
  expect(await from('https://shop.example')).toBeUndefined()
  for (const origin of ['https://evil.example', 'null', undefined])
    expect(await from(origin)).toBe('auth.origin_not_allowed')
  const headers = { origin: 'https://evil.example' }
  expect(await get({ key: app.secret(), headers })).toBeUndefined()
})

test('each verified key is reported as used, and none that was refused', async () => {
  const used: string[] = []
  app = await startAuthApp(() => ({ onKeyUsed: (keyId) => used.push(keyId) }))
  const works = app.secret(['sessions:read'])
  await get({ key: works })
  await get({ key: works })
  for (const key of [app.unknown(), app.publishable(), app.secret(['*'], { status: 'revoked' })])
    await get({ key })
  expect(used).toEqual(Array(2).fill('key_00000000000000000000000001'))
})
