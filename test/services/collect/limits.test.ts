import { afterEach, beforeEach, expect, test } from 'vitest'
import { createMemoryLimiter, type MemoryLimiter } from '../../support/memory-limiter.ts'
import {
  type CollectApp,
  clientOf,
  lastSent,
  quiet,
  sendAgain,
  startCollectApp,
} from './collect-app.ts'

const shop = 'https://shop.example'
const limit = 5

let app: CollectApp
let limiter: MemoryLimiter
beforeEach(async () => {
  limiter = createMemoryLimiter(() => app.now.ms)
  app = await startCollectApp({ limiter, defaultLimits: { secret: 1, publishable: limit } })
})
afterEach(() => app.close())

const limitsOf = ({ headers }: { headers: Record<string, unknown> }) =>
  ['limit', 'remaining', 'cost'].map((name) => headers[`x-ratelimit-${name}`])
const none = Array(3).fill(undefined)
const spent = () => limiter.consumed.reduce((sum, { cost }) => sum + cost, 0)

test('sessions, batches and results take a unit each of the bucket of publishable keys', async () => {
  const client = clientOf(app, app.publishable())
  await client.open()
  await client.sendBatch(quiet)
  await client.requestResult(quiet)
  const answers = app.exchanges.map(({ answer }) => [answer.status, ...limitsOf(answer)])
  expect(answers).toEqual([
    [200, '5', '4', '1'],
    [200, '5', '3', '1'],
    [200, '5', '2', '1'],
  ])
})

test('bodies that are refused have paid too', async () => {
  const authorization = `Bearer ${app.publishable()}`
  const json = { authorization, 'content-type': 'application/json' }
  const refused = [
    await app.send('POST', '/v2/collect/sessions', { headers: json, payload: '{' }),
    await app.send('POST', '/v2/collect/sessions', { headers: json, payload: '{}' }),
    await app.send('POST', '/v2/collect/sessions/a/documents/b/batches', {
      headers: json,
      payload: '{}',
    }),
  ]
  expect(refused.map(({ status }) => status)).toEqual([400, 422, 415])
  expect(refused.map(limitsOf)).toEqual(['4', '3', '2'].map((left) => ['5', left, '1']))
})

test('a page can read that and how long it has to wait', async () => {
  const client = clientOf(app, app.publishable({ allowedOrigins: [shop] }), {
    headers: { origin: shop },
    retry: { attempts: 1, wait: async () => {} },
  })
  await client.open()
  const opened = lastSent(app, 'sessions')
  for (let i = 1; i < limit; i++) await sendAgain(app, opened)
  const { status, json, headers } = await sendAgain(app, opened)
  expect([status, json.error.code]).toEqual([429, 'rate_limit.exceeded'])
  expect(headers).toMatchObject({
    'x-ratelimit-limit': '5',
    'x-ratelimit-remaining': '0',
    'x-ratelimit-cost': '1',
    // One unit in 12 seconds; the refused request owes one.
    'retry-after': '24',
    'access-control-allow-origin': shop,
    'access-control-allow-credentials': 'true',
    'access-control-expose-headers':
      'X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Cost, Retry-After, X-Request-Id',
    vary: 'Origin',
  })
})

test('a page can read the refusal for too many new keys too', async () => {
  const headers = { origin: shop }
  const guess = async () => {
    const other = await startCollectApp()
    await other.close()
    return app.send('POST', '/v2/collect/sessions', {
      headers: { ...headers, authorization: `Bearer ${other.publishable()}` },
    })
  }
  for (let i = 0; i < 50; i++) expect((await guess()).status).toBe(401)
  const answer = await guess()
  expect([answer.status, answer.headers['retry-after'], limitsOf(answer)]).toEqual([429, '1', none])
  expect(answer.headers).toMatchObject({
    'access-control-allow-origin': shop,
    'access-control-expose-headers': expect.stringContaining('Retry-After'),
  })
})

test("a native key in another platform's SDK takes nothing, on any of the endpoints", async () => {
  const [ios, browser] = [app.publishable({ clientTarget: 'native_ios' }), app.publishable()]
  const web = clientOf(app, browser)
  await web.open()
  await web.sendBatch(quiet)
  await web.requestResult(quiet)
  expect(spent()).toBe(3)
  for (const kind of ['sessions', 'batches', 'results'] as const) {
    const sent = lastSent(app, kind)
    const answer = await sendAgain(app, sent, {
      headers: { ...sent.headers, authorization: `Bearer ${ios}` },
    })
    expect([answer.status, answer.json.error.code]).toEqual([403, 'auth.native_key_not_allowed'])
    expect(limitsOf(answer)).toEqual(none)
  }
  expect(spent()).toBe(3)
})

test('preflights, pings and network checks take nothing', async () => {
  const authorization = `Bearer ${app.publishable()}`
  const answers = [
    await app.send('OPTIONS', '/v2/collect/sessions', { headers: { origin: shop, authorization } }),
    await app.send('GET', '/v2/collect/pings/a', { headers: { authorization } }),
    await app.send('POST', '/v2/collect/network-checks', {
      headers: { authorization, 'content-type': 'application/json' },
      payload: '{}',
    }),
  ]
  expect(answers.map(({ status }) => status)).toEqual([204, 204, 202])
  expect(answers.map(limitsOf)).toEqual([none, none, none])
  expect(limiter.consumed).toEqual([])
})

test('one document hands off ten times at once, and then once in five seconds', async () => {
  await app.close()
  app = await startCollectApp()
  const client = clientOf(app, app.publishable(), { retry: { attempts: 1, wait: async () => {} } })
  await client.open()
  await client.sendBatch(quiet)
  for (let i = 0; i < 10; i++) await client.requestResult(quiet)
  await expect(client.requestResult(quiet)).rejects.toThrow()
  const refused = lastSent(app, 'results')
  const again = await sendAgain(app, refused)
  expect([again.status, again.json.error.code, again.headers['retry-after']]).toEqual([
    429,
    'rate_limit.exceeded',
    '5',
  ])
  expect(again.headers['x-ratelimit-limit']).toBeUndefined()
  // Another document is not held up, and what was answered is answered again.
  const other = clientOf(app, app.publishable())
  await other.open()
  await other.requestResult(quiet)
  app.now.ms += 5000
  expect((await sendAgain(app, refused)).status).toBe(200)
  expect((await sendAgain(app, refused)).status).toBe(200)
})
