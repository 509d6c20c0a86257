import { randomBytes } from 'node:crypto'
import { afterAll, expect, it } from 'vitest'
import { readConfig } from '../../../infra/config.ts'
import { reservePort } from '../../../infra/http/listening.ts'
import { respondWhileStarting } from '../../../services/server/starting.ts'

const origin = 'https://shop.example'

const config = readConfig({ PUBLIC_URL: 'https://tidegate.example' })
const held = await reservePort(
  { port: 0, host: '127.0.0.1' },
  respondWhileStarting({ config, random: randomBytes }),
)
const url = `http://127.0.0.1:${held.port}`
afterAll(() => held.release())

it.each(['/v1/sessions', '/livez', '/readyz', '/metrics'])(
  'a process that is starting responds to %s with the documented error',
  async (path) => {
    const response = await fetch(url + path)
    const requestId = response.headers.get('x-request-id')
    expect(requestId).toMatch(/^req_[0-9a-f]{32}$/)
    expect(await response.json()).toEqual({
      error: {
        code: 'service.unavailable',
        message: 'The server is starting.',
        status: 503,
        retryable: true,
        request_id: requestId,
        docs_url: 'https://tidegate.example/docs/errors#service.unavailable',
      },
    })
    expect(response.status).toBe(503)
    expect(response.headers.get('retry-after')).toBe('1')
    expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8')
    expect(response.headers.get('access-control-allow-origin')).toBeNull()
  },
)

it('a process that is starting lets pages read the error, and allows their preflights', async () => {
  const preflight = await fetch(`${url}/v2/collect/sessions`, {
    method: 'OPTIONS',
    headers: {
      origin,
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'authorization',
    },
  })
  expect(preflight.status).toBe(204)
  expect(preflight.headers.get('access-control-allow-headers')).toMatch(/Authorization/)
  expect(preflight.headers.get('access-control-allow-methods')).toMatch(/POST/)
  const response = await fetch(`${url}/v2/collect/sessions`, {
    method: 'POST',
    headers: { origin },
    // Larger than the socket buffers: the response must still arrive.
    body: new Uint8Array(8 * 1024 * 1024),
  })
  for (const { headers } of [preflight, response]) {
    expect(headers.get('access-control-allow-origin')).toBe(origin)
    expect(headers.get('access-control-allow-credentials')).toBe('true')
  }
  expect(response.headers.get('access-control-expose-headers')).toMatch(/Retry-After, X-Request-Id/)
  expect(response.status).toBe(503)
})

it('a process that is starting responds to HEAD without a body', async () => {
  const response = await fetch(`${url}/readyz`, { method: 'HEAD' })
  expect([response.status, await response.text()]).toEqual([503, ''])
})
