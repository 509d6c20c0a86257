import { gunzipSync } from 'node:zlib'
import pino from 'pino'
import { afterAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { ApiError, type ErrorCode, errorTable } from '../../../infra/errors/errors.ts'
import { NotReady, type ReadinessCheck } from '../../../infra/http/health.ts'
import { LogUnavailable } from '../../../infra/log/port.ts'
import { sendRaw } from '../../support/raw-http.ts'
import { createTestApp } from './test-app.ts'

const lines: string[] = []
let ready = true

const days = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun']
const size = z.enum(['s', 'm'])
const choices = z
  .strictObject({
    size,
    sizes: z.array(size),
    colour: z.enum(['red', 'green', 'blue']),
    day: z.enum(days),
    version: z.literal(1),
    tag: z.enum(['T'], { error: 'a tag of the catalogue' }),
  })
  .partial()

const logger = pino({ base: null }, { write: (line: string) => void lines.push(line) })
const check = () => (ready ? Promise.resolve() : Promise.reject(new Error('password is hunter2')))
const app = await createTestApp({ logger, checks: [{ name: 'log', check }] })
const body = z.strictObject({ name: z.string().max(5), kind: z.enum(['a', 'b']) })
app.post('/things', { schema: { body }, config: { parameterSet: 'thing_create' } }, () => ({
  ok: true,
}))
app.post('/choices', { schema: { body: choices } }, () => ({ ok: true }))
app.get(
  '/things',
  { schema: { querystring: z.object({ limit: z.coerce.number().int().max(9) }) } },
  () => [],
)
app.delete('/things/:id', (_, reply) => reply.code(204).send())
app.get('/broken', () => {
  throw new Error('secret detail')
})
app.get<{ Params: { how: string } }>(
  '/busy/:how',
  { config: { isHighVolume: true } },
  async ({ params }) => {
    if (params.how === 'refused') throw new ApiError('request.not_found')
    return {}
  },
)
app.get('/log-down', () => Promise.reject(new LogUnavailable('no broker')))
app.get('/database-down', () => Promise.reject(Object.assign(new Error('gone'), { code: '57P01' })))
app.get('/refused', () => {
  throw new ApiError('rate_limit.exceeded', { headers: { 'retry-after': '7' } })
})
await app.listen({ port: 0, host: '127.0.0.1' })
afterAll(() => app.close())

interface Sent {
  body?: string
  contentType?: string
}

const json = 'application/json'
const large = `"${'x'.repeat(256 * 1024)}"`
const failures: [ErrorCode, string, Sent?][] = [
  ['request.not_found', 'GET /nowhere'],
  ['request.not_found', `DELETE /things/${'x'.repeat(3000)}`],
  ['request.malformed', 'DELETE /things/%zz'],
  ['request.method_not_allowed', 'PUT /things'],
  ['request.method_not_allowed', 'OPTIONS /things'],
  ['request.validation_failed', 'GET /things?limit=x'],
  ['request.validation_failed', 'POST /things'],
  ['request.malformed_body', 'POST /things', { body: '{', contentType: json }],
  ['request.malformed_body', 'POST /things', { body: '', contentType: json }],
  ['request.invalid_content_type', 'POST /things', { body: 'a', contentType: 'text/plain' }],
  ['request.invalid_content_type', 'POST /things', { body: 'a', contentType: '???' }],
  ['request.payload_too_large', 'POST /things', { body: large, contentType: json }],
  ['internal.error', 'GET /broken'],
  ['service.unavailable', 'GET /log-down'],
  ['service.unavailable', 'GET /database-down'],
  ['rate_limit.exceeded', 'GET /refused'],
]

const methods = ['GET', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'HEAD'] as const

/** Sends a request such as `GET /things`. */
function inject(line: string, { body, contentType }: Sent = {}) {
  const [name, url = ''] = line.split(' ')
  const method = methods.find((method) => method === name) ?? 'GET'
  const headers = {
    'x-request-id': 'req_mine',
    ...(contentType && { 'content-type': contentType }),
  }
  return app.inject({ url, method, headers, ...(body !== undefined && { payload: body }) })
}
const postJson = (url: string, body: object) =>
  inject(`POST ${url}`, { body: JSON.stringify(body), contentType: json })

describe('the error envelope', () => {
  test.each(failures)('%s: %s', async (code, line, sent) => {
    const response = await inject(line, sent)
    const { status, retryable = false } = errorTable[code]
    const id = response.headers['x-request-id']
    expect(id).toMatch(/^req_[0-9a-f]{32}$/)
    expect(response.statusCode).toBe(status)
    expect(response.headers['content-type']).toBe('application/json; charset=utf-8')
    const docs_url = `https://tidegate.example/docs/errors#${code}`
    const error = { code, status, retryable, request_id: id, docs_url }
    expect(response.json()).toMatchObject({ error })
    if (status === 503) expect(response.headers['retry-after']).toBe('1')
    if (status === 405) expect(response.headers.allow).toBe('GET, HEAD, POST')
  })

  test('lists every invalid field, the parameter set and the allowed values', async () => {
    const body = { name: 'longer than five', kind: 'c', rate_limit: 1 }
    const response = await postJson('/things', body)
    const { details } = response.json().error
    expect(details.parameter_set).toBe('thing_create')
    expect(details.allowed_values).toEqual(['a', 'b'])
    expect(details.fields).toEqual([
      { name: 'name', issue: 'too_large', expected: 'at most 5 characters' },
      { name: 'kind', issue: 'invalid_value', expected: 'one of allowed_values' },
      { name: 'rate_limit', issue: 'not_allowed' },
    ])
    expect(response.body).not.toContain('longer than five')
  })

  test.each<[string, object, { expected: string[]; allowed?: string[] }]>([
    ['a list', { size: 'x' }, { expected: ['one of allowed_values'], allowed: ['s', 'm'] }],
    ['a literal', { version: 2 }, { expected: ['1'], allowed: ['1'] }],
    [
      'the same list twice',
      { sizes: ['x', 'y'] },
      { expected: Array(2).fill('one of allowed_values'), allowed: ['s', 'm'] },
    ],
    ['short lists', { size: 'x', colour: 'x' }, { expected: ['s or m', 'red, green or blue'] }],
    ['a short list and a literal', { size: 'x', version: 2 }, { expected: ['s or m', '1'] }],
    [
      'a short and a long list',
      { size: 'x', day: 'x' },
      { expected: ['s or m', 'one of allowed_values'], allowed: days },
    ],
    ['a custom message', { tag: 'x' }, { expected: ['a tag of the catalogue'], allowed: ['T'] }],
  ])('allowed values: %s', async (_, body, { expected, allowed }) => {
    const response = await postJson('/choices', body)
    const { details } = response.json().error
    expect(details.fields.map((field: { expected: string }) => field.expected)).toEqual(expected)
    expect(details.allowed_values).toEqual(allowed)
  })

  test('an unexpected error is logged in full, and hidden from the caller', async () => {
    lines.length = 0
    const response = await inject('GET /broken')
    expect(response.body).not.toContain('secret detail')
    const line = JSON.parse(lines.find((text) => text.includes('request failed')) ?? '{}')
    expect(line).toMatchObject({
      request_id: response.headers['x-request-id'],
      code: 'internal.error',
    })
    expect(line.cause.message).toBe('secret detail')
  })
})

test('204 and HEAD responses have a request id', async () => {
  const deleted = await inject('DELETE /things/1', { body: '', contentType: json })
  const head = await inject('HEAD /things?limit=1')
  expect([deleted.statusCode, head.statusCode, head.body]).toEqual([204, 200, ''])
  for (const { headers } of [deleted, head]) expect(headers['x-request-id']).toMatch(/^req_/)
})

test('logs a response in one line without address or URL', async () => {
  lines.length = 0
  const response = await inject('DELETE /things/personal-name?limit=1')
  expect(lines).toHaveLength(1)
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({
    request_id: response.headers['x-request-id'],
    method: 'DELETE',
    route: '/things/:id',
    status: 204,
    organization_id: null,
    duration_ms: expect.any(Number),
  })
  expect(lines[0]).not.toMatch(/personal-name|127\.0\.0\.1/)
})

test('logs no probes, and only errors of a high-volume route', async () => {
  lines.length = 0
  for (const path of ['/livez', '/readyz', '/busy/fine', '/busy/refused'])
    await inject(`GET ${path}`)
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { route: '/busy/:how', status: 404 },
  ])
})

describe('requests that the HTTP parser rejects', () => {
  const host = 'Host: a\r\n'
  test.each([
    { raw: 'nonsense\r\n\r\n', code: 'request.malformed' },
    { raw: `OPTIONS * HTTP/1.1\r\n${host}Connection: close\r\n\r\n`, code: 'request.not_found' },
    {
      raw: `GET / HTTP/1.1\r\n${host}Expect: magic\r\nConnection: close\r\n\r\n`,
      code: 'request.not_found',
    },
    {
      raw: `GET / HTTP/1.1\r\n${host}X-Long: ${'x'.repeat(40_000)}\r\n\r\n`,
      code: 'request.headers_too_large',
    },
  ] as const)('$code: $raw', async ({ raw, code }) => {
    const { status, headers, body } = await sendRaw(app, raw)
    expect(status).toBe(errorTable[code].status)
    const { error } = JSON.parse(body)
    expect(error.code).toBe(code)
    expect(headers['x-request-id']).toBe(error.request_id)
  })
})

describe('health checks and the OpenAPI document', () => {
  test('readyz names failing checks without details', async () => {
    expect((await inject('GET /livez')).json()).toEqual({ status: 'ok' })
    expect((await inject('GET /readyz')).json()).toEqual({ status: 'ok' })
    ready = false
    const down = await inject('GET /readyz')
    ready = true
    expect(down.statusCode).toBe(503)
    expect(down.json().error.message).toBe('Not ready: log.')
    expect(down.body).not.toContain('hunter2')
  })

  test('readyz shows reasons for operators, and warnings while it is ready', async () => {
    const reason = async () => {
      throw new NotReady('nothing was read for 75 s')
    }
    const readyzOf = async (checks: ReadinessCheck[]) => {
      await using probed = await createTestApp({ checks })
      const { statusCode, body } = await probed.inject('/readyz')
      return { statusCode, body: JSON.parse(body) }
    }
    expect(await readyzOf([{ name: 'scoring', check: reason }])).toMatchObject({
      statusCode: 503,
      body: { error: { message: 'Not ready: scoring (nothing was read for 75 s).' } },
    })
    expect(await readyzOf([{ name: 'scoring', check: reason, isWarning: true }])).toEqual({
      statusCode: 200,
      body: { status: 'ok', warnings: ['scoring (nothing was read for 75 s)'] },
    })
  })

  test('the OpenAPI document has its version, and the error reference has every code', async () => {
    const description = (await inject('GET /openapi.json')).json()
    expect(description).toMatchObject({ openapi: '3.1.0', info: { version: '2026-03-25' } })
    expect(Object.keys(description.paths)).toContain('/things')
    const reference = (await inject('GET /docs/errors')).body
    for (const code of Object.keys(errorTable)) expect(reference).toContain(`id="${code}"`)
  })

  test('the OpenAPI document is compressed and has an ETag', async () => {
    const [first, second] = [await inject('GET /openapi.json'), await inject('GET /openapi.json')]
    expect([first.statusCode, second.rawPayload.equals(first.rawPayload)]).toEqual([200, true])
    const { etag } = first.headers
    expect(etag).toMatch(/^W\/"[\w-]{22}"$/)
    const packed = await app.inject({
      url: '/openapi.json',
      headers: { 'accept-encoding': 'gzip' },
    })
    expect(gunzipSync(packed.rawPayload).equals(first.rawPayload)).toBe(true)
    const known = await app.inject({
      url: '/openapi.json',
      headers: { 'if-none-match': String(etag) },
    })
    expect([known.statusCode, known.body]).toEqual([304, ''])
  })
})
