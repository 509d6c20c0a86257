import { once } from 'node:events'
import { connect } from 'node:net'
import { pino } from 'pino'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { metricsRoutes } from '../../../infra/http/metrics.ts'
import { sendRaw } from '../../support/raw-http.ts'
import { createTestApp } from './test-app.ts'

const lines: string[] = []
const json = { 'content-type': 'application/json' }

const app = await createTestApp({
  logger: pino({ base: null }, { write: (line: string) => void lines.push(line) }),
  trustedProxies: ['127.0.0.1', '10.0.0.0/8'],
})
metricsRoutes(app, { projectionLags: async () => [] })
const strict = z.strictObject({ name: z.string() })
app.post('/loose', { schema: { body: z.object({ name: z.string() }) } }, ({ body }) => body)
app.post('/strict', { schema: { body: strict } }, ({ body }) => body)
app.post('/free', { schema: { body: z.record(z.string(), z.unknown()) } }, ({ body }) => body)
app.get('/ip', ({ ip }) => ({ ip }))
await app.listen({ port: 0, host: '127.0.0.1' })
afterAll(() => app.close())
beforeEach(() => {
  lines.length = 0
})

const post = (url: string, payload: string | Buffer, headers: Record<string, string> = json) =>
  app.inject({ method: 'POST', url, payload, headers })

describe('members with a special meaning in JavaScript', () => {
  const members = ['"__proto__":{"admin":true}', '"constructor":{"prototype":{"admin":true}}']

  test.each(members)('%s is ignored if unknown members are', async (member) => {
    const response = await post('/loose', `{"name":"a",${member}}`)
    expect([response.statusCode, response.json()]).toEqual([200, { name: 'a' }])
  })

  test.each(members)('%s is rejected by name if unknown members are', async (member) => {
    const response = await post('/strict', `{"name":"a",${member}}`)
    const fields = [{ name: member.split('"')[1], issue: 'not_allowed' }]
    expect(response.json()).toMatchObject({ error: { status: 422, details: { fields } } })
  })

  test('an object of any shape keeps its prototype', async () => {
    const response = await post('/free', '{"__proto__":{"admin":true},"constructor":1}')
    expect(response.body).toBe('{"constructor":1}')
  })
})

describe('a body', () => {
  test('gets 400 if it is not UTF-8', async () => {
    const response = await post('/loose', Buffer.from('{"name":"\xe9"}', 'latin1'))
    const { code } = response.json().error
    expect([response.statusCode, code]).toEqual([400, 'request.malformed_body'])
  })

  test('may start with a byte order mark', async () => {
    expect((await post('/loose', '\ufeff{"name":"\u00e9"}')).json()).toEqual({ name: '\u00e9' })
  })

  test.each(['GZIP', 'identity, deflate'])('gets 415 with the encoding %s', async (coding) => {
    const response = await post('/loose', '{"name":"a"}', { ...json, 'content-encoding': coding })
    expect([response.statusCode, response.headers['accept-encoding']]).toEqual([415, 'identity'])
    expect(response.json().error.details.header_name).toBe('Content-Encoding')
  })

  test.each(['identity', ' Identity ', ''])('is read with the encoding %j', async (coding) => {
    const response = await post('/loose', '{"name":"a"}', { ...json, 'content-encoding': coding })
    expect(response.statusCode).toBe(200)
  })
})

test.each(['Content-Length: 100', 'Transfer-Encoding: chunked'])(
  'a client that hangs up while sending its body (%s) causes no 503 and no log line',
  async (framing) => {
    const address = app.server.address()
    if (typeof address !== 'object' || !address) throw new Error('not listening')
    const socket = connect(address.port, '127.0.0.1')
    const head = `POST /loose HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n${framing}\r\n\r\n`
    socket.write(head)
    const [, response] = await once(app.server, 'request')
    socket.resetAndDestroy()
    await once(response, 'close')
    expect(lines).toEqual([])
    expect((await app.inject('/metrics')).body).not.toContain('http_response_status_code="503"')
  },
)

test.each(['/livez', '/readyz'])('allows HTTP/1.0 probes of %s without Host', async (path) => {
  const { status, body } = await sendRaw(app, `GET ${path} HTTP/1.0\r\n\r\n`)
  expect([status, JSON.parse(body)]).toEqual([200, { status: 'ok' }])
})

test.each([
  'GET /livez HTTP/1.1\r\nConnection: close\r\n\r\n',
  'GET /ip HTTP/1.0\r\n\r\n',
  'GET /nowhere HTTP/1.0\r\n\r\n',
])('rejects other requests without Host: %j', async (raw) => {
  const { status, body } = await sendRaw(app, raw)
  expect([status, JSON.parse(body).error.code]).toEqual([400, 'request.malformed'])
})
