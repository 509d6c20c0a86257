import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type ErrorCode, errorCodes, errorTable } from '../../infra/errors/errors.ts'
import { errorEnvelopeSchema } from '../../infra/http/schemas.ts'
import { sendExample } from '../authorization/call.ts'
import type { Example } from '../authorization/endpoint.ts'
import { brokenAddress, sessionId, startWorld, unknownAddress } from '../authorization/world.ts'
import { type Answer, sendRaw } from '../support/raw-http.ts'
import { mostExpensive, type Provoke, type Provoking, prepare, rotationOf } from './provoke.ts'
import { gateRequests } from './provoke-gate.ts'

type Headers = Record<string, string>
type SentBody = Required<Example>['body']

const sessions = '/v1/sessions'
const get = (url: string, headers: Headers): Example => ({ method: 'GET', url, headers })
const post = (url: string, headers: Headers, body?: object): Example => ({
  method: 'POST',
  url,
  headers,
  ...(body && { body }),
})
const rotate = (ip: string, headers: Headers) =>
  post('/v1/agents/ip-rotation', headers, rotationOf(ip))
/** A change of a session that sends these bytes, as JSON unless told. */
const change = (headers: Headers, body: SentBody, more: Headers = json): Example => ({
  method: 'PATCH',
  url: `${sessions}/${sessionId}`,
  headers: { ...headers, ...more },
  body,
})
const json = { 'content-type': 'application/json' }
const gzip = { 'content-encoding': 'gzip' }

/** A request that each code answers; a new code needs one here. */
const requests: Record<ErrorCode, Provoke> = {
  'auth.missing_api_key': () => get(sessions, {}),
  'auth.invalid_api_key': () => get(sessions, { authorization: 'Bearer sk_live_x' }),
  'auth.secret_key_required': ({ keys }) => get(sessions, keys.publishable),
  'auth.secret_key_not_allowed': ({ keys, collect }) => withKey(collect.open, keys.secret),
  'auth.native_key_not_allowed': ({ keys }) => get(sessions, keys.native),
  'auth.insufficient_scope': ({ keys }) => get(sessions, keys.narrow),
  'auth.organization_access_denied': ({ keys }) =>
    get(`/v1/organizations/org_${'0'.repeat(26)}`, keys.secret),
  'auth.live_access_required': ({ organizationId, keys }) => ({
    method: 'DELETE',
    url: `/v1/organizations/${organizationId}/agent-directories/agent.example`,
    headers: keys.test,
  }),
  'auth.organization_inactive': ({ keys }) => get(sessions, keys.suspended),
  'auth.origin_not_allowed': ({ keys, collect }) => withKey(collect.open, keys.restricted),
  'console.login_required': () => get('/console/api/session', {}),
  'console.refused': () => post('/console/api/logout', {}),
  'request.malformed': ({ keys }) => get(`${sessions}/%zz`, keys.secret),
  'request.malformed_body': ({ keys }) => change(keys.secret, '{'),
  'request.not_found': ({ keys }) => get(`${sessions}/sid_x`, keys.secret),
  'request.method_not_allowed': () => ({ method: 'DELETE', url: sessions }),
  // Waiting for it would take half a minute; Node reports it by this event.
  'request.timeout': ({ world }) =>
    sendRaw(world.app, 'GET /livez HTTP/1.1\r\n', 'ERR_HTTP_REQUEST_TIMEOUT'),
  'request.conflict': ({ keys }) =>
    post('/v1/organizations', keys.secret, { name: 'Again', slug: 'provoking' }),
  'request.payload_too_large': ({ keys }) => change(keys.secret, `"${'x'.repeat(256 * 1024)}"`),
  'request.invalid_content_type': ({ keys }) =>
    change(keys.secret, 'x', { 'content-type': 'text/plain' }),
  'request.validation_failed': ({ keys }) => get(`${sessions}?limit=0`, keys.secret),
  'request.headers_too_large': ({ world }) =>
    sendRaw(world.app, `GET / HTTP/1.1\r\nHost: a\r\nX-Long: ${'x'.repeat(40_000)}\r\n\r\n`),
  ...gateRequests,
  'session.sequence_mismatch': ({ keys, collect }) =>
    withKey(collect.batch, keys.publishable, { 'x-batch-seq': '9' }),
  'session.invalid_or_expired': ({ keys, collect }) => withKey(collect.batch, keys.foreign),
  'transport.session_reset_required': ({ keys, collect }) => ({
    ...withKey(collect.batch, keys.publishable),
    body: changed(collect.batch.body),
  }),
  'rate_limit.exceeded': ({ keys }) => ({ ...mostExpensive, headers: keys.exhausted }),
  'internal.error': ({ keys }) => rotate(brokenAddress, keys.secret),
  'service.unavailable': ({ keys }) => rotate(unknownAddress, keys.secret),
}

/** Further ways to some codes. */
const furtherRequests: Record<string, [ErrorCode, Provoke]> = {
  'the method QUERY': [
    'request.method_not_allowed',
    ({ world }) =>
      sendRaw(world.app, `QUERY ${sessions} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`),
  ],
  'a compressed body': [
    'request.invalid_content_type',
    ({ keys }) => change(keys.secret, {}, gzip),
  ],
  'a compressed batch': [
    'request.invalid_content_type',
    ({ keys, collect }) => withKey(collect.batch, keys.publishable, gzip),
  ],
  'a body that is not UTF-8': [
    'request.malformed_body',
    ({ keys }) => change(keys.secret, Buffer.from('"\xe9"', 'latin1')),
  ],
}

function withKey(example: Example, key: Headers, more: Headers = {}): Example {
  return { ...example, headers: { ...example.headers, ...key, ...more } }
}

/** A body with one bit of its nonce changed. */
function changed(body: Example['body']): Buffer {
  if (!Buffer.isBuffer(body)) throw new Error('not bytes')
  const bytes = Buffer.from(body)
  bytes[5] = (bytes[5] ?? 0) ^ 1
  return bytes
}

let provoking: Provoking
let page: string

beforeAll(async () => {
  const world = await startWorld()
  provoking = await prepare(world)
  page = (await world.app.inject('/docs/errors')).body
  await world.app.listen({ port: 0, host: '127.0.0.1' })
})
afterAll(() => provoking.world.stop())

async function provoke(send: Provoke): Promise<Answer> {
  const request = await send(provoking)
  return 'status' in request ? request : sendExample(provoking.world.app, request)
}

describe('every code', () => {
  test.each(errorCodes)('%s comes in the envelope and leads to its documentation', async (code) => {
    const answer = await provoke(requests[code])
    const { status, retryable = false } = errorTable[code]
    const { error } = errorEnvelopeSchema.parse(JSON.parse(answer.body))
    expect(error).toMatchObject({ code, status, retryable })
    expect(error.message).not.toMatch(/[{}]/)
    expect(answer.status).toBe(status)
    expect(answer.headers['content-type']).toBe('application/json; charset=utf-8')
    expect(answer.headers['x-request-id']).toBe(error.request_id)
    const docs = new URL(error.docs_url)
    expect(docs.pathname).toBe('/docs/errors')
    expect(page.split(`id="${docs.hash.slice(1)}"`)).toHaveLength(2)
    if (status === 429 || status === 503)
      expect(String(answer.headers['retry-after'])).toMatch(/^[1-9]\d*$/)
    if (status === 401) expect(answer.headers['www-authenticate']).toBe('Bearer')
    if (status === 405) expect(answer.headers.allow).toBe('GET, HEAD')
  })

  test.each(Object.entries(furtherRequests))('%s', async (_, [code, send]) => {
    const answer = await provoke(send)
    const { error } = errorEnvelopeSchema.parse(JSON.parse(answer.body))
    expect(error).toMatchObject({ code, status: errorTable[code].status })
    if (code === 'request.method_not_allowed') expect(answer.headers.allow).toBe('GET, HEAD')
  })

  test('has one of the statuses that clients are told of', () => {
    const statuses = new Set(errorCodes.map((code): number => errorTable[code].status))
    for (const status of [400, 401, 403, 404, 405, 409, 410, 413, 415, 422, 429, 500, 503])
      expect(statuses).toContain(status)
  })
})

describe('/docs/errors', () => {
  test('says of every code its status, meaning and remedy', () => {
    for (const code of errorCodes) {
      const section =
        page.split(`<section id="${code}" class="panel">`)[1]?.split('</section>')[0] ?? ''
      expect(section).toContain(`HTTP ${errorTable[code].status}`)
      const words = section
        .replaceAll(/<[^>]+>/g, '')
        .replaceAll('&#39;', "'")
        .replaceAll('&amp;', '&')
      expect(words).toContain(errorTable[code].meaning.replaceAll('`', ''))
      expect(words).toContain(errorTable[code].remedy.replaceAll('`', ''))
    }
  })

  test('says which conflicts may be sent again, and how to know them', () => {
    const section =
      page.split('<section id="request.conflict" class="panel">')[1]?.split('</section>')[0] ?? ''
    const words = section.replaceAll(/<[^>]+>/g, '')
    expect(words).toContain('the same request fails again, unless retryable is true')
    for (const word of ['header_name', 'next_action', 'Idempotency-Key', 'Retry-After'])
      expect(section).toContain(`<code>${word}</code>`)
  })

  test('loads nothing and runs nothing', async () => {
    const { headers } = await provoking.world.app.inject('/docs/errors')
    expect(headers['content-security-policy']).toMatch(
      /^default-src 'none'; style-src 'sha256-[^']+';/,
    )
    expect(page).not.toMatch(/<script|<link|<img|\bsrc=|@import|url\(/i)
    expect(page).toContain('prefers-color-scheme: dark')
  })
})
