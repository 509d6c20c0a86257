import { once } from 'node:events'
import { connect } from 'node:net'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { createMemoryLimiter, type MemoryLimiter } from '../../support/memory-limiter.ts'
import { type AuthApp, startAuthApp } from './auth-app.ts'

let app: AuthApp
let limiter: MemoryLimiter
beforeEach(async () => {
  app = await startAuthApp((now) => {
    limiter = createMemoryLimiter(() => now.ms)
    return { limiter, defaultLimits: { secret: 25, publishable: 25 } }
  })
  app.app.post(
    '/items',
    {
      ...app.auth.requireSecretCosting('agents:ip_rotation', costOf),
      bodyLimit: 500,
      schema: { body: z.unknown() },
    },
    async ({ body }) => ({ body }),
  )
})
afterEach(() => app.app.close())

function costOf(body: unknown): number {
  const named = typeof body === 'object' && body !== null && 'items' in body ? body.items : undefined
  return Array.isArray(named) ? Math.min(10, Math.max(1, named.length)) : 1
}

const items = (count: number) => JSON.stringify({ items: Array(count).fill('x') })
const post = (payload: string, { key = app.secret(), type = 'application/json' } = {}) =>
  app.send({ method: 'POST', url: '/items', key, headers: { 'content-type': type }, payload })

test.each([
  ['no items', '{}', 200, '1'],
  ['0 items', items(0), 200, '1'],
  ['1 item', items(1), 200, '1'],
  ['10 items', items(10), 200, '10'],
  ['11 items', items(11), 200, '10'],
  ['items that are no array', '{"items":"abcdefg"}', 200, '1'],
  ['an array', '[1,2,3]', 200, '1'],
  ['null', 'null', 200, '1'],
  ['10 items behind a byte order mark', `\uFEFF${items(10)}`, 200, '10'],
  ['malformed JSON', `${items(10)}}`, 400, '1'],
  ['a forbidden member', '{"items":[1,2],"__proto__":{}}', 400, '2'],
  ['an empty body', '', 400, '1'],
  ['too large a body', items(500), 413, '1'],
])('%s', async (_, payload, status, cost) => {
  const answer = await post(payload)
  expect(answer).toMatchObject({ status, limits: ['25', String(25 - Number(cost)), cost] })
  if (status === 200) expect(answer.json).toEqual({ body: JSON.parse(payload.replace('\uFEFF', '')) })
})

test.each([
  ['text/plain', 415, '1'],
  ['application/xml; a="application/json"', 415, '1'],
  ['application', 415, '1'],
  ['Application/JSON; charset=utf-8', 200, '7'],
  [' application/json ;x', 200, '7'],
])('content type %s', async (type, status, cost) => {
  expect(await post(items(7), { type })).toMatchObject({ status, limits: ['25', expect.anything(), cost] })
})

test('no body and no content type costs 1', async () => {
  const answer = await app.send({ method: 'POST', url: '/items', key: app.secret() })
  expect([answer.status, answer.limits[2]]).toEqual([200, '1'])
})

test('more than is left is 429, with its cost, and is taken all the same', async () => {
  await post(items(10))
  await post(items(10))
  const refused = await post(items(10))
  expect(refused).toMatchObject({ status: 429, code: 'rate_limit.exceeded', limits: ['25', '0', '10'] })
  // 5 units short, and 10 more for the same again, at 25 in 60 seconds.
  expect(refused.headers['retry-after']).toBe('36')
})

test('a missing scope has paid for its items', async () => {
  expect(await post(items(4), { key: app.secret(['sessions:read']) })).toMatchObject({
    status: 403,
    code: 'auth.insufficient_scope',
    limits: ['25', '21', '4'],
  })
})

test('a key that is refused has not', async () => {
  for (const key of [app.unknown(), app.publishable(), app.secret(['*'], { status: 'revoked' })]) {
    const { status, limits } = await post(items(4), { key })
    expect([Math.floor(status / 100), limits]).toEqual([4, Array(3).fill(undefined)])
  }
  expect(limiter.taken).toEqual([])
})

/** One request over a socket, whole answer included; the connection ends by the server or by `end`. */
async function raw(request: string, { end = false } = {}): Promise<string> {
  const address = await app.app.listen({ port: 0, host: '127.0.0.1' })
  const socket = connect({ port: Number(new URL(address).port), host: '127.0.0.1' })
  let answer = ''
  socket.setEncoding('utf8').on('data', (chunk) => {
    answer += chunk
  })
  socket.write(request)
  if (end) socket.destroySoon()
  await once(socket, 'close')
  return answer
}

const chunkedHead = (key: string) =>
  `POST /items HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n`

test('a body that turns out too large is 413, has paid 1, and ends the connection', async () => {
  const chunk = `190\r\n${'x'.repeat(400)}\r\n`
  const answer = await raw(`${chunkedHead(app.secret())}${chunk}${chunk}`)
  expect(answer).toMatch(/^HTTP\/1\.1 413 /)
  expect(answer).toMatch(/x-ratelimit-cost: 1\r\n/i)
  expect(answer).toMatch(/connection: close\r\n/i)
  expect(answer).toContain('request.payload_too_large')
})

test('a body that never ends costs nothing', async () => {
  expect(await raw(`${chunkedHead(app.secret())}5\r\n{"ite\r\n`, { end: true })).not.toContain('HTTP/1.1 2')
  expect(limiter.taken).toEqual([])
})
