import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import {
  type CollectApp,
  clientOf,
  lastSent,
  quiet,
  sendAgain,
  startCollectApp,
} from './collect-app.ts'

let app: CollectApp
beforeEach(async () => {
  app = await startCollectApp()
})
afterEach(() => app.close())

const sessions = '/v2/collect/sessions'
const documents = `${sessions}/sid_00000000000000000000000000/documents/abc`
const checks = '/v2/collect/network-checks'
const shop = 'https://shop.example'
const readable = {
  'access-control-allow-origin': shop,
  'access-control-allow-credentials': 'true',
  'access-control-expose-headers':
    'X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Cost, Retry-After, X-Request-Id',
  vary: 'Origin',
}

describe('CORS', () => {
  test.each([sessions, `${documents}/batches`, `${documents}/results`, checks])(
    'a preflight of %s without a key gets 204 and allows what the SDK needs',
    async (path) => {
      const { status, headers } = await app.send('OPTIONS', path, {
        headers: { origin: shop, 'access-control-request-method': 'POST' },
      })
      expect(status).toBe(204)
      expect(headers).toMatchObject({
        'access-control-allow-origin': shop,
        'access-control-allow-credentials': 'true',
        'access-control-allow-methods': 'POST, OPTIONS',
        'access-control-allow-headers': 'Authorization, Content-Type, X-Client-Key, X-Batch-Seq',
        'access-control-max-age': '7200',
        vary: 'Origin',
      })
    },
  )

  test('an allowed origin can read responses, errors and the exposed headers', async () => {
    const key = app.publishable({ allowedOrigins: [shop] })
    const client = clientOf(app, key, { headers: { origin: shop } })
    await client.open()
    await client.sendBatch(quiet)
    const sent = lastSent(app, 'batches')
    const failed = await sendAgain(app, sent, { payload: Buffer.alloc(0) })
    expect(failed.status).toBe(422)
    for (const response of [sent.response, failed])
      expect(response?.headers).toMatchObject(readable)
  })

  test.each([
    ['auth.origin_not_allowed', { allowedOrigins: ['https://other.example'] }],
    ['auth.native_key_not_allowed', { clientTarget: 'native_ios' as const }],
  ])('a page cannot read the error %s of its key', async (code, principal) => {
    const headers = { authorization: `Bearer ${app.publishable(principal)}`, origin: shop }
    const response = await app.send('POST', sessions, { headers })
    expect([response.status, response.json.error.code]).toEqual([403, code])
    expect(response.headers).not.toHaveProperty('access-control-allow-origin')
    expect(response.headers).not.toHaveProperty('access-control-allow-credentials')
  })

  test.each([
    ['GET', '/v2/collect/none', 404],
    ['PUT', sessions, 405],
    ['POST', '/v2/collect/pings/a', 405],
    ['GET', `/v2/collect/pings/${'x'.repeat(4000)}`, 404],
    ['GET', '/v2/collect/pings/%ff', 400],
    ['GET', '/v2/collect/pings/a!', 404],
  ] as const)('a page can read why %s %.40s is refused', async (method, path, expected) => {
    const { status, json, headers } = await app.send(method, path, { headers: { origin: shop } })
    expect([status, json.error.request_id]).toEqual([expected, headers['x-request-id']])
    expect(headers).toMatchObject(readable)
  })

  test.each([
    ['OPTIONS', '/v2/collect/none', 204, shop],
    ['OPTIONS', '/v1/none', 404, undefined],
    ['GET', '/v1/none', 404, undefined],
  ] as const)(
    '%s of the unknown path %s returns %i and allows %s',
    async (method, path, ...expected) => {
      const headers = { origin: shop, 'access-control-request-method': 'POST' }
      const response = await app.send(method, path, { headers })
      expect([response.status, response.headers['access-control-allow-origin']]).toEqual(expected)
    },
  )

  test('without an Origin header, no origin is allowed', async () => {
    const { headers } = await app.send('GET', '/v2/collect/pings/a')
    expect(headers).toMatchObject({ vary: 'Origin' })
    expect(headers).not.toHaveProperty('access-control-allow-origin')
  })
})

describe('requests without a key', () => {
  const check = (payload: string, type = 'application/json') =>
    app.send('POST', checks, { headers: { 'content-type': type }, payload })

  test.each(['A-z_09', 'x'.repeat(128)])('the ping %.9s returns 204', async (id) => {
    expect((await app.send('GET', `/v2/collect/pings/${id}`)).status).toBe(204)
    expect(app.log.records).toEqual([])
  })

  test.each(['a.b', 'a%20b', 'x'.repeat(129)])('the ping %.9s returns 404', async (id) => {
    expect((await app.send('GET', `/v2/collect/pings/${id}`)).status).toBe(404)
  })

  test('a network check stores nothing', async () => {
    const { status, json } = await check('{"rtt":12,"later":{"more":true}}')
    expect([status, json]).toEqual([202, { ack: true }])
    expect(app.log.records).toEqual([])
  })

  test.each([
    ['over 4 KiB', `{"a":"${'x'.repeat(4096)}"}`, 413],
    ['that is not an object', '[1]', 422],
  ])('a network check %s is rejected', async (_, payload, expected) => {
    expect((await check(payload)).status).toBe(expected)
  })

  const headers = { 'content-type': 'application/json', origin: shop }
  const asks = [
    (remoteAddress: string) => app.send('GET', '/v2/collect/pings/a', { headers, remoteAddress }),
    (remoteAddress: string) => app.send('POST', checks, { headers, payload: '{}', remoteAddress }),
  ]
  const statuses = async (times: number, from: (i: number) => string) => {
    const counts: Record<number, number> = {}
    for (let i = 0; i < times; i++) {
      const { status } = (await asks[i % 2]?.(from(i))) ?? { status: 0 }
      counts[status] = (counts[status] ?? 0) + 1
    }
    return counts
  }

  test('one source gets a burst of 50 and 10 per second, then 429', async () => {
    expect(await statuses(80, () => '192.0.2.1')).toEqual({ 204: 25, 202: 25, 429: 30 })
    expect(await asks[1]?.('192.0.2.1')).toMatchObject({
      json: { error: { code: 'rate_limit.exceeded', retryable: true } },
      headers: { 'retry-after': '1', 'access-control-allow-origin': shop },
    })
    expect(await statuses(2, () => '192.0.2.2')).toEqual({ 204: 1, 202: 1 })
    app.now.ms += 1000
    expect(await statuses(20, () => '192.0.2.1')).toEqual({ 204: 5, 202: 5, 429: 10 })
  })

  test('all sources together get a burst of 1000, then 429', async () => {
    const many = await statuses(1200, (i) => `10.0.${i >> 8}.${i & 255}`)
    expect(many).toEqual({ 204: 500, 202: 500, 429: 200 })
  })
})
