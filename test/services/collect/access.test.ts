import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import {
  type Answer,
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

const documents = '/v2/collect/sessions/sid_00000000000000000000000000/documents/abc'
const keyed = ['/v2/collect/sessions', `${documents}/batches`, `${documents}/results`]
const shop = 'https://shop.example'

describe('keys', () => {
  describe.each(keyed)('%s', (path) => {
    test('without a key is 401 auth.missing_api_key', async () => {
      const { status, json } = await app.send('POST', path)
      expect([status, json.error.code]).toEqual([401, 'auth.missing_api_key'])
    })

    test('with an unknown or malformed key is 401 auth.invalid_api_key', async () => {
      const other = await startCollectApp()
      for (const key of [other.publishable(), 'pk_live_nonsense', 'agt_x']) {
        const { status, json } = await app.send('POST', path, {
          headers: { authorization: `Bearer ${key}` },
        })
        expect([status, json.error.code]).toEqual([401, 'auth.invalid_api_key'])
      }
      await other.close()
    })

    test('with a secret key is 403 auth.secret_key_not_allowed', async () => {
      const { status, json } = await app.send('POST', path, {
        headers: { authorization: `Bearer ${app.secret()}` },
      })
      expect([status, json.error.code]).toEqual([403, 'auth.secret_key_not_allowed'])
    })

    test.each([
      undefined,
      'https://evil.example',
      'http://shop.example',
      'https://shop.example:444',
      'null',
    ])('with a key for one origin, from %s, is 403 auth.origin_not_allowed', async (origin) => {
      const key = app.publishable({ allowedOrigins: [shop] })
      const headers = { authorization: `Bearer ${key}`, ...(origin ? { origin } : {}) }
      const answer = await app.send('POST', path, { headers })
      expect([answer.status, answer.json.error.code]).toEqual([403, 'auth.origin_not_allowed'])
      expect(answer.headers['access-control-allow-origin']).toBeUndefined()
      expect(answer.headers['access-control-allow-credentials']).toBeUndefined()
    })
  })

  test('nothing is stored for a refused key', async () => {
    for (const path of keyed) await app.send('POST', path)
    expect(app.log.records).toEqual([])
  })
})

describe('CORS', () => {
  test('a preflight is answered 204 without a key, with what the SDK needs', async () => {
    for (const path of [...keyed, '/v2/collect/network-checks']) {
      const { status, headers } = await app.send('OPTIONS', path, {
        headers: {
          origin: shop,
          'access-control-request-method': 'POST',
          'access-control-request-headers': 'authorization,content-type,x-batch-seq,x-client-key',
        },
      })
      expect(status).toBe(204)
      expect(headers).toMatchObject({
        'access-control-allow-origin': shop,
        'access-control-allow-credentials': 'true',
        'access-control-allow-methods': 'POST, OPTIONS',
        'access-control-allow-headers': 'Authorization, Content-Type, X-Client-Key, X-Batch-Seq',
        'access-control-max-age': '7200',
        vary: 'Origin',
        'x-request-id': expect.stringMatching(/^req_[0-9a-f]{32}$/),
      })
    }
  })

  test('an allowed origin may read answers and errors, and the headers it needs', async () => {
    const key = app.publishable({ allowedOrigins: [shop] })
    const client = clientOf(app, key, { headers: { origin: shop } })
    await client.open()
    await client.sendBatch(quiet)
    const sent = lastSent(app, 'batches')
    const failed = await sendAgain(app, sent, { payload: Buffer.alloc(0) })
    expect(failed.status).toBe(422)
    for (const { headers } of [sent.answer, failed]) {
      expect(headers).toMatchObject({
        'access-control-allow-origin': shop,
        'access-control-allow-credentials': 'true',
        'access-control-expose-headers':
          'X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Cost, Retry-After, X-Request-Id',
        vary: 'Origin',
      })
    }
  })

  test.each([
    ['GET', '/v2/collect/none', 404],
    ['PUT', '/v2/collect/sessions', 405],
    ['POST', '/v2/collect/pings/a', 405],
    ['GET', `/v2/collect/pings/${'x'.repeat(4000)}`, 404],
    ['GET', '/v2/collect/pings/%ff', 400],
    ['GET', '/v2/collect/pings/a!', 404],
  ] as const)('a page can read why %s %.40s is refused', async (method, path, expected) => {
    const { status, json, headers } = await app.send(method, path, { headers: { origin: shop } })
    expect([status, json.error.request_id]).toEqual([expected, headers['x-request-id']])
    expect(headers).toMatchObject({
      'access-control-allow-origin': shop,
      'access-control-allow-credentials': 'true',
      'access-control-expose-headers': expect.stringContaining('X-Request-Id'),
      vary: 'Origin',
    })
  })

  test('a preflight of a path that is not there is answered too, and of one that is not ours is not', async () => {
    const headers = { origin: shop, 'access-control-request-method': 'POST' }
    const stray = await app.send('OPTIONS', '/v2/collect/none', { headers })
    expect([stray.status, stray.headers['access-control-allow-origin']]).toEqual([204, shop])
    for (const [method, path] of [['OPTIONS', '/v1/none'] as const, ['GET', '/v1/none'] as const]) {
      const answer = await app.send(method, path, { headers })
      expect([answer.status, answer.headers['access-control-allow-origin']]).toEqual([
        404,
        undefined,
      ])
    }
  })

  test('without an Origin nothing is allowed to anyone', async () => {
    const client = clientOf(app, app.publishable())
    await client.open()
    expect(lastSent(app, 'sessions').answer.headers['access-control-allow-origin']).toBeUndefined()
  })
})

describe('edges', () => {
  test('another method is 405 with Allow', async () => {
    const { status, json, headers } = await app.send('PUT', '/v2/collect/sessions')
    expect([status, json.error.code, headers.allow]).toEqual([
      405,
      'request.method_not_allowed',
      'OPTIONS, POST',
    ])
  })

  test('every answer has a request id of our own', async () => {
    const headers = { 'x-request-id': 'req_mine' }
    for (const path of ['/v2/collect/pings/a', '/v2/collect/pings/a!', '/v2/collect/none']) {
      const answer = await app.send('GET', path, { headers })
      expect(answer.headers['x-request-id']).toMatch(/^req_[0-9a-f]{32}$/)
    }
  })
})

describe('pings', () => {
  test.each(['a', 'A-z_09', 'x'.repeat(128)])(
    '%s is answered 204, without a key and without a record',
    async (id) => {
      const { status, json } = await app.send('GET', `/v2/collect/pings/${id}`)
      expect([status, json]).toEqual([204, undefined])
      expect(app.log.records).toEqual([])
    },
  )

  test.each(['a.b', 'a%20b', 'x'.repeat(129), 'x'.repeat(4000), '%ff'])(
    'the id %s is 404',
    async (id) => {
      const { status, json } = await app.send('GET', `/v2/collect/pings/${id}`)
      expect([400, 404]).toContain(status)
      expect(json.error.code).toMatch(/^request\./)
    },
  )
})

describe('network checks', () => {
  const check = (payload: string, type = 'application/json') =>
    app.send('POST', '/v2/collect/network-checks', { headers: { 'content-type': type }, payload })

  test('are taken without a key, and leave nothing', async () => {
    const { status, json } = await check('{"rtt":12,"later":{"more":true}}')
    expect([status, json]).toEqual([202, { ack: true }])
    expect(app.log.records).toEqual([])
  })

  test.each([
    ['over 4 KiB', `{"a":"${'x'.repeat(4096)}"}`, 413],
    ['not JSON', '{', 400],
    ['not an object', '[1]', 422],
    ['empty', '', 400],
  ])('%s is refused', async (_, payload, expected) => {
    expect((await check(payload)).status).toBe(expected)
  })

  test('another content type is 415', async () => {
    expect((await check('{}', 'text/plain')).status).toBe(415)
  })
})

describe('what needs no key', () => {
  const headers = { 'content-type': 'application/json', origin: shop }
  const asks = [
    (remoteAddress: string) => app.send('GET', '/v2/collect/pings/a', { headers, remoteAddress }),
    (remoteAddress: string) =>
      app.send('POST', '/v2/collect/network-checks', { headers, payload: '{}', remoteAddress }),
  ]
  const statuses = async (times: number, from: (i: number) => string) => {
    const counts = new Map<number, number>()
    for (let i = 0; i < times; i++) {
      const { status } = (await asks[i % 2]?.(from(i))) ?? { status: 0 }
      counts.set(status, (counts.get(status) ?? 0) + 1)
    }
    return Object.fromEntries(counts)
  }

  test('is asked for by one source 50 times at once and 10 times a second, and then refused', async () => {
    expect(await statuses(80, () => '192.0.2.1')).toEqual({ 204: 25, 202: 25, 429: 30 })
    const refused = await asks[1]?.('192.0.2.1')
    expect(refused).toMatchObject({
      json: { error: { code: 'rate_limit.exceeded', retryable: true } },
      headers: { 'retry-after': '1', 'access-control-allow-origin': shop },
    })
    expect(
      Object.keys(refused?.headers ?? {}).filter((name) => name.startsWith('x-ratelimit')),
    ).toEqual([])
    expect(await statuses(2, () => '192.0.2.2')).toEqual({ 204: 1, 202: 1 })
    app.now.ms += 1000
    expect(await statuses(20, () => '192.0.2.1')).toEqual({ 204: 5, 202: 5, 429: 10 })
  })

  test('is asked for by all sources together 1000 times at once, and then refused', async () => {
    const many = await statuses(1200, (i) => `10.0.${i >> 8}.${i & 255}`)
    expect(many).toEqual({ 204: 500, 202: 500, 429: 200 })
  })
})

function operationAt({ paths }: Answer['json'], method: 'get' | 'post', path: string) {
  const operation = paths[path]?.[method]
  if (!operation) throw new Error(`${method} ${path} is not described`)
  return operation
}

test('the interface description names the five endpoints with their bodies', async () => {
  const { json } = await app.send('GET', '/openapi.json')
  const paths = Object.keys(json.paths).filter((path) => path.startsWith('/v2/collect'))
  expect(paths.sort()).toEqual([
    '/v2/collect/network-checks',
    '/v2/collect/pings/{pingId}',
    '/v2/collect/sessions',
    '/v2/collect/sessions/{sessionId}/documents/{documentId}/batches',
    '/v2/collect/sessions/{sessionId}/documents/{documentId}/results',
  ])
  const open = operationAt(json, 'post', '/v2/collect/sessions')
  const body = JSON.stringify(open.requestBody)
  for (const member of ['clientPublicKey', 'resumeToken', 'continuity', 'sdk', 'page'])
    expect(body).toContain(member)
  expect(open.security).toEqual([{ publishableKey: [] }])
})

test('the interface description says what bodies, headers and errors the endpoints have', async () => {
  const { json } = await app.send('GET', '/openapi.json')
  const path = '/v2/collect/sessions/{sessionId}/documents/{documentId}'
  const [batches, results] = [
    operationAt(json, 'post', `${path}/batches`),
    operationAt(json, 'post', `${path}/results`),
  ]
  for (const { requestBody, responses, security } of [batches, results]) {
    expect(requestBody).toEqual({
      required: true,
      content: { 'application/octet-stream': { schema: { type: 'string', format: 'binary' } } },
    })
    expect(Object.keys(responses)).toEqual(
      [200, 400, 401, 403, 409, 410, 413, 415, 422, 429, 431, 500, 503].map((status) =>
        String(status),
      ),
    )
    expect(security).toEqual([{ publishableKey: [] }])
  }
  const headersOf = ({ parameters }: ReturnType<typeof operationAt>) =>
    parameters.flatMap((one) => (one.in === 'header' && one.required ? [one.name] : []))
  expect(headersOf(batches)).toEqual(['X-Client-Key', 'X-Batch-Seq'])
  expect(headersOf(results)).toEqual(['X-Client-Key'])
  const statuses = (operation: { responses: object }) => Object.keys(operation.responses)
  expect(statuses(operationAt(json, 'post', '/v2/collect/sessions'))).toEqual(
    expect.arrayContaining(['400', '401', '403', '413', '415', '422', '429', '500', '503']),
  )
  expect(statuses(operationAt(json, 'post', '/v2/collect/network-checks'))).toEqual(
    expect.arrayContaining(['400', '413', '415', '422', '429', '500', '503']),
  )
  expect(statuses(operationAt(json, 'get', '/v2/collect/pings/{pingId}'))).toEqual(
    expect.arrayContaining(['404', '429']),
  )
})
