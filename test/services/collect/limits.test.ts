import { afterEach, expect, test } from 'vitest'
import { createMemoryLimiter } from '../../support/memory-limiter.ts'
import {
  type CollectApp,
  clientOf,
  lastSent,
  quiet,
  sendAgain,
  startCollectApp,
} from './collect-app.ts'

const shop = 'https://shop.example'

let app: CollectApp
afterEach(() => app.close())

/** Creates an app whose publishable keys have five units per minute. */
async function startLimited() {
  const limiter = createMemoryLimiter(() => app.now.ms)
  app = await startCollectApp({ limiter, defaultLimits: { secret: 1, publishable: 5 } })
  return limiter
}

test('sessions, batches and results cost a unit each, and a page can read how long to wait', async () => {
  await startLimited()
  const client = clientOf(app, app.publishable(), { headers: { origin: shop } })
  await client.open()
  await client.sendBatch(quiet)
  await client.requestResult(quiet)
  expect(app.sent.map(({ response }) => response?.headers['x-ratelimit-remaining'])).toEqual([
    '4',
    '3',
    '2',
  ])
  const opened = lastSent(app, 'sessions')
  for (let i = 0; i < 2; i++) await sendAgain(app, opened)
  const { status, json, headers } = await sendAgain(app, opened)
  expect([status, json.error.code]).toEqual([429, 'rate_limit.exceeded'])
  expect(headers).toMatchObject({
    'x-ratelimit-limit': '5',
    'x-ratelimit-remaining': '0',
    'x-ratelimit-cost': '1',
    // A unit is refilled every 12 seconds; the rejected request owes one.
    'retry-after': '24',
    'access-control-allow-origin': shop,
    'access-control-expose-headers': expect.stringContaining('Retry-After'),
  })
})

test('a page can also read the 429 for too many new keys', async () => {
  await startLimited()
  const other = await startCollectApp()
  await other.close()
  const guess = () => {
    const headers = { origin: shop, authorization: `Bearer ${other.publishable()}` }
    return app.send('POST', '/v2/collect/sessions', { headers })
  }
  for (let i = 0; i < 50; i++) expect((await guess()).status).toBe(401)
  const { status, headers } = await guess()
  expect(status).toBe(429)
  expect(headers).toMatchObject({ 'retry-after': '1', 'access-control-allow-origin': shop })
  expect(headers).not.toHaveProperty('x-ratelimit-limit')
})

test('preflights, pings and network checks cost nothing, even with a valid key', async () => {
  const limiter = await startLimited()
  const authorization = `Bearer ${app.publishable()}`
  const json = { authorization, 'content-type': 'application/json' }
  const responses = [
    await app.send('OPTIONS', '/v2/collect/sessions', { headers: { origin: shop, authorization } }),
    await app.send('GET', '/v2/collect/pings/a', { headers: { authorization } }),
    await app.send('POST', '/v2/collect/network-checks', { headers: json, payload: '{}' }),
  ]
  expect(responses.map(({ status }) => status)).toEqual([204, 204, 202])
  expect(limiter.consumed).toEqual([])
})

test("a native key in another platform's SDK costs nothing on any endpoint", async () => {
  const limiter = await startLimited()
  const client = clientOf(app, app.publishable())
  await client.open()
  await client.sendBatch(quiet)
  await client.requestResult(quiet)
  const authorization = `Bearer ${app.publishable({ clientTarget: 'native_ios' })}`
  for (const kind of ['sessions', 'batches', 'results'] as const) {
    const { headers } = lastSent(app, kind)
    const response = await sendAgain(app, lastSent(app, kind), {
      headers: { ...headers, authorization },
    })
    expect(response.json.error.code).toBe('auth.native_key_not_allowed')
    expect(response.headers).not.toHaveProperty('x-ratelimit-cost')
  }
  expect(limiter.consumed.reduce((sum, { cost }) => sum + cost, 0)).toBe(3)
})

test('one document can hand off ten times at once, then once in five seconds', async () => {
  app = await startCollectApp()
  const client = clientOf(app, app.publishable(), { retry: { attempts: 1 } })
  await client.open()
  await client.sendBatch(quiet)
  for (let i = 0; i < 10; i++) await client.requestResult(quiet)
  await expect(client.requestResult(quiet)).rejects.toThrow()
  const refused = lastSent(app, 'results')
  const again = await sendAgain(app, refused)
  expect(again).toMatchObject({
    status: 429,
    json: { error: { code: 'rate_limit.exceeded' } },
    headers: { 'retry-after': '5' },
  })
  // Other documents are not affected, and repeats get the same response.
  const other = clientOf(app, app.publishable())
  await other.open()
  await other.requestResult(quiet)
  app.now.ms += 5000
  expect((await sendAgain(app, refused)).status).toBe(200)
  expect((await sendAgain(app, refused)).status).toBe(200)
})
