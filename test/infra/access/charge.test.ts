import { once } from 'node:events'
import { connect } from 'node:net'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { createBudget } from '../../../infra/access/budget.ts'
import { createMemoryLimiter, type MemoryLimiter } from '../../support/memory-limiter.ts'
import {
  type AuthApp,
  organizationId,
  otherOrganization,
  type Send,
  startAuthApp,
} from './auth-app.ts'

let app: AuthApp
let limiter: MemoryLimiter
let limited: string[]

async function start({ later = false } = {}): Promise<void> {
  limited = []
  app = await startAuthApp((now) => {
    limiter = createMemoryLimiter(() => now.ms, { later })
    const defaultLimits = { secret: 6, publishable: 12 }
    return { limiter, defaultLimits, onRateLimited: (keyType) => limited.push(keyType) }
  })
}

const rest = (request: Send) => app.send({ url: '/rest', ...request })

describe.each([
  ['synchronously', false],
  ['asynchronously', true],
])('with a limiter that decides %s', (_, later) => {
  beforeEach(() => start({ later }))

  test('charges one unit per request and returns the remaining units', async () => {
    const key = app.secret()
    for (const left of ['5', '4', '3'])
      expect((await rest({ key })).limits).toEqual(['6', left, '1'])
    const collect = await app.send({ url: '/collect', key: app.publishable() })
    expect(collect.limits).toEqual(['12', '11', '1'])
  })

  test('returns 429 with all headers if units are missing, and charges them anyway', async () => {
    const key = app.secret()
    for (let i = 0; i < 6; i++) expect((await rest({ key })).status).toBe(200)
    const first = await rest({ key })
    expect(first).toMatchObject({ status: 429, limits: ['6', '0', '1'] })
    expect(first.json.error).toMatchObject({ code: 'rate_limit.exceeded', retryable: true })
    // 6 units in 60 seconds are one in 10 seconds: the seventh and the next request need two.
    expect(first.headers['retry-after']).toBe('20')
    expect((await rest({ key })).headers['retry-after']).toBe('30')
    app.now.ms += 29_000
    expect((await rest({ key })).status).toBe(429)
    app.now.ms += 12_000
    expect(await rest({ key })).toMatchObject({ status: 200, limits: ['6', '0', '1'] })
    expect(limited).toEqual(Array(3).fill('secret'))
  })

  test('charges nothing for requests that fail key verification', async () => {
    const native = app.publishable({ clientTarget: 'native_ios' })
    const restricted = app.publishable({ allowedOrigins: ['https://shop.example'] })
    const page = { origin: 'https://evil.example' }
    const refused: [Send, string][] = [
      [{}, 'auth.missing_api_key'],
      [{ key: app.unknownKey() }, 'auth.invalid_api_key'],
      [{ key: app.secret(['*'], { status: 'revoked' }) }, 'auth.invalid_api_key'],
      [
        { key: app.secret(['*'], { organizationStatus: 'suspended' }) },
        'auth.organization_inactive',
      ],
      [{ key: app.publishable() }, 'auth.secret_key_required'],
      [{ key: app.secret(), url: '/collect' }, 'auth.secret_key_not_allowed'],
      [{ key: native, url: '/collect', headers: page }, 'auth.native_key_not_allowed'],
      [{ key: restricted, url: '/collect', headers: page }, 'auth.origin_not_allowed'],
    ]
    for (const [request, code] of refused)
      expect(await rest(request)).toMatchObject({ code, limits: Array(3).fill(undefined) })
    expect(limiter.consumed).toEqual([])
  })

  test('checks the bucket before scope and organization', async () => {
    const narrow = app.secret(['fingerprints:read'])
    for (let i = 0; i < 6; i++) await rest({ key: narrow })
    for (const url of ['/rest', `/v1/organizations/${otherOrganization}`])
      expect((await app.send({ url, key: narrow })).code).toBe('rate_limit.exceeded')
  })
})

describe('buckets', () => {
  beforeEach(() => start())

  test("are shared by an organization's keys of one type, test and live", async () => {
    const test = { environment: 'test' } as const
    for (const key of [app.secret(), app.secret(), app.secret(['sessions:list'])])
      await rest({ key })
    expect((await rest({ key: app.secret() })).limits[1]).toBe('2')
    await app.send({ url: '/collect', key: app.publishable() })
    expect((await app.send({ url: '/collect', key: app.publishable(test) })).limits[1]).toBe('10')
  })

  test('are separate for each organization', async () => {
    for (let i = 0; i < 13; i++) await app.send({ url: '/collect', key: app.publishable() })
    const other = app.publishable({ organizationId: otherOrganization })
    expect((await app.send({ url: '/collect', key: other })).limits).toEqual(['12', '11', '1'])
  })

  test("have the organization's own limit if it has one", async () => {
    const key = app.publishable({ rateLimit: 90 })
    expect((await app.send({ url: '/collect', key })).limits).toEqual(['90', '89', '1'])
    expect(limiter.consumed).toEqual([
      { owner: organizationId, bucket: 'publishable', limit: 90, cost: 1 },
    ])
  })
})

describe('a key with a budget per source', () => {
  beforeEach(async () => {
    limited = []
    app = await startAuthApp((now) => {
      limiter = createMemoryLimiter(() => now.ms)
      const budget = createBudget({ clock: () => now.ms, perSecond: 2, burst: 3 })
      return {
        limiter,
        perSourceBudget: ({ organizationId: owner }) =>
          owner === otherOrganization ? budget : undefined,
        onRateLimited: (keyType) => limited.push(keyType),
      }
    })
  })

  const from = (remoteAddress: string, key: string) =>
    app.send({ url: '/collect', key, remoteAddress })

  test('is rejected only from a source whose budget is used up', async () => {
    const key = app.publishable({ organizationId: otherOrganization })
    for (let i = 0; i < 3; i++) expect((await from('192.0.2.1', key)).status).toBe(200)
    for (let i = 0; i < 20; i++) {
      const refused = await from('192.0.2.1', key)
      expect(refused).toMatchObject({ status: 429, code: 'rate_limit.exceeded' })
      expect(refused.headers['retry-after']).toBe('1')
    }
    expect((await from('192.0.2.2', key)).status).toBe(200)
    expect(limited).toEqual(Array(20).fill('publishable'))
    // Rejected requests cost nothing, so a second is enough.
    app.now.ms += 1000
    expect((await from('192.0.2.1', key)).status).toBe(200)
  })

  test("neither charges nor reports the organization's bucket", async () => {
    const key = app.publishable({ organizationId: otherOrganization })
    for (let i = 0; i < 4; i++)
      expect((await from('192.0.2.1', key)).limits).toEqual(Array(3).fill(undefined))
    expect(limiter.consumed).toEqual([])
  })

  test('does not affect keys of other organizations', async () => {
    const key = app.publishable()
    for (const left of ['2999', '2998', '2997', '2996'])
      expect((await from('192.0.2.1', key)).limits).toEqual(['3000', left, '1'])
  })
})

test('the default limits are 600 and 3000', async () => {
  app = await startAuthApp((now) => ({ limiter: createMemoryLimiter(() => now.ms) }))
  expect((await rest({ key: app.secret() })).limits[0]).toBe('600')
  expect((await app.send({ url: '/collect', key: app.publishable() })).limits[0]).toBe('3000')
})

describe('a cost that depends on the body', () => {
  let app: AuthApp
  let limiter: MemoryLimiter
  beforeEach(async () => {
    app = await startAuthApp((now) => {
      limiter = createMemoryLimiter(() => now.ms)
      return { limiter, defaultLimits: { secret: 25, publishable: 25 } }
    })
    app.app.post(
      '/items',
      {
        ...app.auth.requireSecretWithBodyCost('agents:ip_rotation', costOf),
        bodyLimit: 500,
        schema: { body: z.unknown() },
      },
      async ({ body }) => ({ body }),
    )
  })
  afterEach(() => app.app.close())

  function costOf(body: unknown): number {
    const named =
      typeof body === 'object' && body !== null && 'items' in body ? body.items : undefined
    return Array.isArray(named) ? named.length : 1
  }

  const items = (count: number) => JSON.stringify({ items: Array(count).fill('x') })
  const post = (payload: string, { key = app.secret(), type = 'application/json' } = {}) =>
    app.send({ method: 'POST', url: '/items', key, headers: { 'content-type': type }, payload })

  test.each([
    ['7 items', items(7), 200, '7'],
    ['10 items behind a byte order mark', `\uFEFF${items(10)}`, 200, '10'],
    ['malformed JSON', `${items(10)}}`, 400, '1'],
    ['a member named __proto__', '{"items":[1,2],"__proto__":{}}', 200, '2'],
    ['an empty body', '', 400, '1'],
    ['too large a body', items(500), 413, '1'],
  ])('%s', async (_, payload, status, cost) => {
    const response = await post(payload)
    expect(response).toMatchObject({ status, limits: ['25', String(25 - Number(cost)), cost] })
    if (status === 200)
      expect(response.json).toEqual({ body: JSON.parse(payload.replace('\uFEFF', '')) })
  })

  test.each([
    ['text/plain', 415, '1'],
    ['application/xml; a="application/json"', 415, '1'],
    ['application', 415, '1'],
    ['Application/JSON; charset=utf-8', 200, '7'],
    [' application/json ;x', 200, '7'],
  ])('content type %s', async (type, status, cost) => {
    expect(await post(items(7), { type })).toMatchObject({
      status,
      limits: ['25', expect.anything(), cost],
    })
  })

  test('returns 429 with the cost if units are missing, and charges them anyway', async () => {
    await post(items(10))
    await post(items(10))
    const refused = await post(items(10))
    expect(refused).toMatchObject({ status: 429, limits: ['25', '0', '10'] })
    // 5 units of debt and 10 for the retry, at 25 in 60 seconds.
    expect(refused.headers['retry-after']).toBe('36')
  })

  test('charges for the items even if the scope is missing', async () => {
    expect(await post(items(4), { key: app.secret(['sessions:read']) })).toMatchObject({
      status: 403,
      code: 'auth.insufficient_scope',
      limits: ['25', '21', '4'],
    })
  })

  /** Sends a request over a socket and returns the full response. `end` closes the connection after the request. */
  async function raw(request: string, { end = false } = {}): Promise<string> {
    const address = await app.app.listen({ port: 0, host: '127.0.0.1' })
    const socket = connect({ port: Number(new URL(address).port), host: '127.0.0.1' })
    let response = ''
    socket.setEncoding('utf8').on('data', (chunk) => {
      response += chunk
    })
    socket.write(request)
    if (end) socket.destroySoon()
    await once(socket, 'close')
    return response
  }

  const chunkedHead = (key: string) =>
    `POST /items HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n`

  test('returns 413 for a chunked body that grows too large, charges 1 and closes the connection', async () => {
    const chunk = `190\r\n${'x'.repeat(400)}\r\n`
    const response = await raw(`${chunkedHead(app.secret())}${chunk}${chunk}`)
    expect(response).toMatch(/^HTTP\/1\.1 413 /)
    expect(response).toMatch(/x-ratelimit-cost: 1\r\n/i)
    expect(response).toMatch(/connection: close\r\n/i)
    expect(response).toContain('request.payload_too_large')
  })

  test('charges nothing for a body that never ends', async () => {
    expect(await raw(`${chunkedHead(app.secret())}5\r\n{"ite\r\n`, { end: true })).not.toContain(
      'HTTP/1.1 2',
    )
    expect(limiter.consumed).toEqual([])
  })
})
