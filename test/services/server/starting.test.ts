import { randomBytes } from 'node:crypto'
import { afterAll, expect, it } from 'vitest'
import { readConfig } from '../../../infra/config.ts'
import { reservePort } from '../../../infra/http/listening.ts'
import { answerWhileStarting } from '../../../services/server/starting.ts'

const origin = 'https://shop.example'

const config = readConfig({ PUBLIC_URL: 'https://tidegate.example' })
const held = await reservePort(
  { port: 0, host: '127.0.0.1' },
  answerWhileStarting({ config, random: randomBytes }),
)
const url = `http://127.0.0.1:${held.port}`
afterAll(() => held.release())

it.each(['/v1/sessions', '/livez', '/readyz', '/metrics'])(
  'a process that is starting answers %s with the documented error',
  async (path) => {
    const answer = await fetch(url + path)
    const requestId = answer.headers.get('x-request-id')
    expect(requestId).toMatch(/^req_[0-9a-f]{32}$/)
    expect(await answer.json()).toEqual({
      error: {
        code: 'service.unavailable',
        message: 'The server is starting.',
        status: 503,
        retryable: true,
        request_id: requestId,
        docs_url: 'https://tidegate.example/docs/errors#service.unavailable',
      },
    })
    expect(answer.status).toBe(503)
    expect(answer.headers.get('retry-after')).toBe('1')
    expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8')
    expect(answer.headers.get('access-control-allow-origin')).toBeNull()
  },
)

it('a process that is starting lets a page read that, with its preflight', async () => {
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
  const answer = await fetch(`${url}/v2/collect/sessions`, {
    method: 'POST',
    headers: { origin },
    // More than a socket's buffers: the answer arrives all the same.
    body: new Uint8Array(8 * 1024 * 1024),
  })
  for (const { headers } of [preflight, answer]) {
    expect(headers.get('access-control-allow-origin')).toBe(origin)
    expect(headers.get('access-control-allow-credentials')).toBe('true')
  }
  expect(answer.headers.get('access-control-expose-headers')).toMatch(/Retry-After, X-Request-Id/)
  expect(answer.status).toBe(503)
})

it('a process that is starting answers a probe that asks by HEAD, without a body', async () => {
  const answer = await fetch(`${url}/readyz`, { method: 'HEAD' })
  expect([answer.status, await answer.text()]).toEqual([503, ''])
})
