import { randomBytes } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import pino from 'pino'
import { beforeEach, describe, expect, test } from 'vitest'
import { generateApiKey, lookupHashes } from '../../../infra/crypto/api-keys.ts'
import { createKeyring } from '../../../infra/crypto/keyring.ts'
import { createApp } from '../../../infra/http/app.ts'
import { createAuth } from '../../../infra/http/auth.ts'
import { ApiError } from '../../../infra/http/errors.ts'
import type { KeyRecord, PublishablePrincipal } from '../../../infra/http/principal.ts'

const keyring = createKeyring(randomBytes(32).toString('base64'))
const start = 1_800_000_000_000
const base = { keyId: 'key_1', organizationId: 'org_1', environment: 'live', rateLimit: null } as const

let now = start
let lookups = 0
let stored: Map<string, KeyRecord>
let app: FastifyInstance

beforeEach(async () => {
  now = start
  lookups = 0
  stored = new Map()
  const clock = () => now
  const auth = createAuth({ keyring, clock, findKey })
  app = await createApp({
    logger: pino({ level: 'silent' }),
    random: randomBytes,
    publicUrl: 'http://localhost',
  })
  app.get('/rest', { onRequest: auth.requireSecret('sessions:list') }, (request) => auth.secret(request))
  app.get('/read', { onRequest: auth.requireSecret('sessions:read') }, (request) => auth.principal(request))
  app.get('/collect', { onRequest: auth.requirePublishable() }, (request) => auth.publishable(request))
})

async function findKey(hashes: string[]): Promise<KeyRecord | undefined> {
  lookups++
  return hashes.map((hash) => stored.get(hash)).find(Boolean)
}

function add(type: 'secret' | 'publishable', record: KeyRecord): string {
  const { key, lookupHash } = generateApiKey({ type, environment: 'live', keyring, random: randomBytes })
  stored.set(lookupHash, record)
  return key
}

function secret(scopes: string[] = ['*'], changes: Partial<KeyRecord> = {}): string {
  return add('secret', {
    principal: { ...base, type: 'secret', scopes, capabilities: [] },
    status: 'active',
    graceExpiresAt: null,
    organizationStatus: 'active',
    ...changes,
  })
}

function publishable(changes: Partial<PublishablePrincipal> = {}): string {
  return add('publishable', {
    principal: { ...base, type: 'publishable', clientTarget: 'browser', allowedOrigins: [], ...changes },
    status: 'active',
    graceExpiresAt: null,
    organizationStatus: 'active',
  })
}

interface Get {
  url?: '/rest' | '/read' | '/collect'
  authorization?: string | undefined
  origin?: string | undefined
}

/** The error code, or undefined when the request went through. */
async function get({ url = '/rest', authorization, origin }: Get): Promise<string | undefined> {
  const headers = {
    ...(authorization !== undefined && { authorization }),
    ...(origin !== undefined && { origin }),
  }
  const response = await app.inject({ url, headers })
  if (response.statusCode === 401) expect(response.headers['www-authenticate']).toBe('Bearer')
  return response.json().error?.code
}
const withKey = (key: string, options: Get = {}) => get({ authorization: `Bearer ${key}`, ...options })

describe('the bearer', () => {
  test('a missing header is its own error', async () => {
    expect(await get({})).toBe('auth.missing_api_key')
    expect(await get({ authorization: '' })).toBe('auth.missing_api_key')
  })

  test.each(['Bearer', 'Bearer ', 'Basic abc', 'Bearer a b', 'Bearer agt_1', 'Bearer sk_live_x'])(
    '%s is refused without a look-up',
    async (authorization) => {
      expect(await get({ authorization })).toBe('auth.invalid_api_key')
      expect(lookups).toBe(0)
    },
  )

  test('a well-formed key that nobody has is looked up once in 15 seconds', async () => {
    const { key } = generateApiKey({ type: 'secret', environment: 'live', keyring, random: randomBytes })
    for (const later of [0, 14_999, 15_000]) {
      now = start + later
      expect(await withKey(key)).toBe('auth.invalid_api_key')
    }
    expect(lookups).toBe(2)
  })

  test('the scheme is case-insensitive', async () => {
    const key = secret()
    for (const scheme of ['Bearer', 'bearer', 'BEARER'])
      expect(await get({ authorization: `${scheme} ${key}` })).toBeUndefined()
  })
})

describe('the key', () => {
  test('a revoked key is invalid', async () => {
    expect(await withKey(secret(['*'], { status: 'revoked' }))).toBe('auth.invalid_api_key')
  })

  test('a rotating key works until its grace ends, also while cached', async () => {
    const key = secret(['*'], { status: 'rotating', graceExpiresAt: start + 5000 })
    now = start + 4999
    expect(await withKey(key)).toBeUndefined()
    now = start + 5000
    expect(await withKey(key)).toBe('auth.invalid_api_key')
    expect(lookups).toBe(1)
  })

  test.each(['suspended', 'deleted'] as const)(
    'a %s organization is inactive',
    async (organizationStatus) => {
      expect(await withKey(secret(['*'], { organizationStatus }))).toBe('auth.organization_inactive')
    },
  )

  test('there is no way from one key type to the other', async () => {
    expect(await withKey(publishable())).toBe('auth.secret_key_required')
    expect(await withKey(secret(), { url: '/collect' })).toBe('auth.secret_key_not_allowed')
  })

  test('native keys work on collect only, and never from a browser', async () => {
    const key = publishable({ clientTarget: 'native_ios' })
    expect(await withKey(key)).toBe('auth.native_key_not_allowed')
    expect(await withKey(key, { url: '/collect' })).toBeUndefined()
    expect(await withKey(key, { url: '/collect', origin: 'https://a.example' })).toBe(
      'auth.native_key_not_allowed',
    )
  })
})

describe('scopes', () => {
  test('the missing one is named', async () => {
    const authorization = `Bearer ${secret(['sessions:read'])}`
    const response = await app.inject({ url: '/rest', headers: { authorization } })
    expect(response.statusCode).toBe(403)
    expect(response.json().error).toMatchObject({
      code: 'auth.insufficient_scope',
      message: expect.stringContaining('sessions:list'),
    })
  })

  test('the exact scope and * are enough', async () => {
    expect(await withKey(secret(['sessions:list']))).toBeUndefined()
    expect(await withKey(secret(['*']))).toBeUndefined()
  })

  test('no stored scopes means the narrow default', async () => {
    const key = secret([])
    expect(await withKey(key)).toBe('auth.insufficient_scope')
    expect(await withKey(key, { url: '/read' })).toBeUndefined()
  })
})

describe('origins', () => {
  const allowedOrigins = ['https://shop.example', 'http://localhost:3000', 'https://*.app.example']
  test.each([
    ['https://shop.example', true],
    ['https://shop.example:443', false],
    ['http://shop.example', false],
    ['https://shop.example:8443', false],
    ['https://shop.example.evil.example', false],
    ['https://evil-shop.example', false],
    ['https://shop.example/path', false],
    ['https://user@shop.example', false],
    ['http://localhost:3000', true],
    ['http://localhost:3001', false],
    ['https://a.app.example', true],
    ['https://a.b.app.example', true],
    ['https://app.example', false],
    ['http://a.app.example', false],
    ['https://a.app.example:8443', false],
    ['https://evilapp.example', false],
    ['null', false],
    ['', false],
    [undefined, false],
  ])('%s: %s', async (origin, allowed) => {
    const code = await withKey(publishable({ allowedOrigins }), { url: '/collect', origin })
    expect(code).toBe(allowed ? undefined : 'auth.origin_not_allowed')
  })

  test('an empty list takes any origin, also none', async () => {
    const key = publishable()
    for (const origin of ['https://any.example', 'null', undefined])
      expect(await withKey(key, { url: '/collect', origin })).toBeUndefined()
  })
})

describe('the cache', () => {
  test('a verified key is asked for once in 15 seconds, and changes apply after that', async () => {
    const key = secret()
    expect(await withKey(key)).toBeUndefined()
    const [hash = ''] = lookupHashes(keyring, key)
    const record = stored.get(hash)
    if (record) stored.set(hash, { ...record, status: 'revoked' })
    now = start + 14_999
    expect(await withKey(key)).toBeUndefined()
    now = start + 15_000
    expect(await withKey(key)).toBe('auth.invalid_api_key')
    expect(lookups).toBe(2)
  })

  test('concurrent requests share one look-up', async () => {
    const key = secret()
    const results = await Promise.all(Array.from({ length: 20 }, () => withKey(key)))
    expect(new Set(results)).toEqual(new Set([undefined]))
    expect(lookups).toBe(1)
  })

  test('a failed look-up is not remembered', async () => {
    let down = true
    const unreachable = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
    const flaky = createAuth({
      keyring,
      clock: () => now,
      findKey: (hashes) => (down ? Promise.reject(unreachable) : findKey(hashes)),
    })
    app.get('/flaky', { onRequest: flaky.requireSecret('sessions:read') }, () => ({}))
    const headers = { authorization: `Bearer ${secret()}` }
    const failed = await app.inject({ url: '/flaky', headers })
    expect(failed.json().error.code).toBe(new ApiError('service.unavailable').code)
    down = false
    expect((await app.inject({ url: '/flaky', headers })).statusCode).toBe(200)
  })
})
