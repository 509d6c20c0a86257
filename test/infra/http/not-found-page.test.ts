import { afterAll, expect, test } from 'vitest'
import { ApiError } from '../../../infra/errors/errors.ts'
import { createTestApp } from './test-app.ts'

const browser = 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8'

const app = await createTestApp()
const missing = () => {
  throw new ApiError('request.not_found')
}
app.get('/docs/*', missing)
app.get('/v1/things/:id', missing)
app.get('/shop', missing)
afterAll(() => app.close())

async function typeOf(url: string, accept?: string, method: 'GET' | 'HEAD' | 'POST' = 'GET') {
  const headers = accept === undefined ? {} : { accept }
  const response = await app.inject({ method, url, headers })
  return [response.statusCode, String(response.headers['content-type']).split(';')[0]]
}

test.each([
  ['/nothing', browser],
  ['/nothing?next=/v1', browser],
  ['/v1x', browser],
  ['/docs/nothing', browser],
  ['/console-of-mine', 'text/html'],
  ['/nothing', 'application/json;q=0.5, text/html'],
])('sends a page for %s to Accept: %s', async (url, accept) => {
  expect(await typeOf(url, accept)).toEqual([404, 'text/html'])
})

test.each([
  ['/nothing', undefined],
  ['/nothing', '*/*'],
  ['/nothing', 'application/json'],
  ['/nothing', 'application/json, text/html'],
  ['/nothing', 'text/html;q=0.1, application/json'],
  ['/nothing', 'text/html;q=0'],
  ['/nothing', 'image/png'],
  ['/nothing', ';;,=\u00e9'],
  ...['/v1', '/v1/nothing', '/v1/things/1', '/v2/x?y', '/metrics/x', '/livez/x', '/readyz/x'].map(
    (url): [string, string] => [url, browser],
  ),
  ['/console/api/nothing', browser],
  // The route exists, but the resource doesn't.
  ['/shop', browser],
])('sends JSON for %s to Accept: %s', async (url, accept) => {
  expect(await typeOf(url, accept)).toEqual([404, 'application/json'])
})

test('sends a page only for GET and HEAD', async () => {
  expect(await typeOf('/nothing', browser, 'POST')).toEqual([404, 'application/json'])
  expect(await typeOf('/docs/nothing', browser, 'POST')).toEqual([405, 'application/json'])
  expect(await typeOf('/nothing', browser, 'HEAD')).toEqual([404, 'text/html'])
})

test('the page shows the request id and loads nothing', async () => {
  const accepting = { headers: { accept: browser } }
  const { headers, body } = await app.inject({ url: '/nothing/<script>', ...accepting })
  expect(body).toContain(headers['x-request-id'])
  expect(body).not.toContain('<script')
  expect(headers).toMatchObject({ vary: 'Accept', 'x-content-type-options': 'nosniff' })
  expect(headers['content-security-policy']).toMatch(
    /^default-src 'none'; style-src 'sha256-[^']+';/,
  )
})
