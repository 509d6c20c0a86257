import { beforeEach, expect, test } from 'vitest'
import {
  type AuthApp,
  organizationId,
  otherOrganization,
  type Send,
  start,
  startAuthApp,
} from './auth-app.ts'

// Each kind of key on each endpoint is in test/authorization.

let app: AuthApp
beforeEach(async () => {
  app = await startAuthApp()
})

/** The error code, or undefined when the request went through. */
const get = async (request: Send) => (await app.send({ url: '/rest', ...request })).code

test.each(['Bearer ', 'Basic abc', 'Bearer a b', 'Bearer agt_1', 'Bearer sk_live_x'])(
  '%s is refused without a look-up',
  async (authorization) => {
    const { headers, code } = await app.send({ url: '/rest', headers: { authorization } })
    expect([code, headers['www-authenticate']]).toEqual(['auth.invalid_api_key', 'Bearer'])
    expect(app.asked.lookups).toBe(0)
  },
)

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

test('a rotating key works until its grace ends, also while cached', async () => {
  const key = app.secret(['*'], { status: 'rotating', graceExpiresAt: start + 5000 })
  app.now.ms = start + 4999
  expect(await get({ key })).toBeUndefined()
  app.now.ms = start + 5000
  expect(await get({ key })).toBe('auth.invalid_api_key')
  expect(app.asked.lookups).toBe(1)
})

test('a key that does not work says so before its organization does', async () => {
  const key = app.secret(['*'], { status: 'revoked', organizationStatus: 'deleted' })
  expect(await get({ key })).toBe('auth.invalid_api_key')
})

test('no stored scopes means the narrow default, and a removed scope grants nothing', async () => {
  expect(await get({ key: app.secret([]) })).toBe('auth.insufficient_scope')
  expect(await get({ key: app.secret([]), url: '/read' })).toBeUndefined()
  const removed = app.secret(['organizations:manage'])
  for (const url of ['/read', `/v1/organizations/${organizationId}`])
    expect(await get({ key: removed, url })).toBe('auth.insufficient_scope')
})

test('the scope is asked for before the organization of the path', async () => {
  const url = `/v1/organizations/${otherOrganization}`
  expect(await get({ key: app.secret(['sessions:list']), url })).toBe('auth.insufficient_scope')
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
