import { beforeEach, expect, test } from 'vitest'
import {
  type AuthApp,
  organizationId,
  otherOrganization,
  type Send,
  start,
  startAuthApp,
} from './auth-app.ts'

// test/authorization tries each kind of key on each endpoint.

let app: AuthApp
beforeEach(async () => {
  app = await startAuthApp()
})

/** Returns the error code; undefined for a success. */
const get = async (request: Send) => (await app.send({ url: '/rest', ...request })).code

test.each(['Bearer ', 'Basic abc', 'Bearer a b', 'Bearer agt_1', 'Bearer sk_live_x'])(
  'rejects %s without a lookup',
  async (authorization) => {
    const { headers, code } = await app.send({ url: '/rest', headers: { authorization } })
    expect([code, headers['www-authenticate']]).toEqual(['auth.invalid_api_key', 'Bearer'])
    expect(app.counts.lookups).toBe(0)
  },
)

test('never repeats the key in an error response', async () => {
  const refused = [
    { key: app.unknownKey() },
    { key: `${app.unknownKey().slice(0, -1)}!` },
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

test('accepts a rotating key until its grace period ends, even if cached', async () => {
  const key = app.secret(['*'], { status: 'rotating', endsAt: start + 5000 })
  app.now.ms = start + 4999
  expect(await get({ key })).toBeUndefined()
  app.now.ms = start + 5000
  expect(await get({ key })).toBe('auth.invalid_api_key')
  expect(app.counts.lookups).toBe(1)
})

test('reports an invalid key before an inactive organization', async () => {
  const key = app.secret(['*'], { status: 'revoked', organizationStatus: 'deleted' })
  expect(await get({ key })).toBe('auth.invalid_api_key')
})

test('uses the default scopes if none are stored, and ignores scopes that no longer exist', async () => {
  expect(await get({ key: app.secret([]) })).toBe('auth.insufficient_scope')
  expect(await get({ key: app.secret([]), url: '/read' })).toBeUndefined()
  const removed = app.secret(['organizations:manage'])
  for (const url of ['/read', `/v1/organizations/${organizationId}`])
    expect(await get({ key: removed, url })).toBe('auth.insufficient_scope')
})

test('checks the scope before the organization in the path', async () => {
  const url = `/v1/organizations/${otherOrganization}`
  expect(await get({ key: app.secret(['sessions:list']), url })).toBe('auth.insufficient_scope')
})

test('reports verified keys as used, and no rejected ones', async () => {
  const used: string[] = []
  app = await startAuthApp(() => ({ onKeyUsed: (keyId) => used.push(keyId) }))
  const works = app.secret(['sessions:read'])
  await get({ key: works })
  await get({ key: works })
  for (const key of [app.unknownKey(), app.publishable(), app.secret(['*'], { status: 'revoked' })])
    await get({ key })
  expect(used).toEqual(Array(2).fill('key_00000000000000000000000001'))
})
