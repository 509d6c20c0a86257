import { once } from 'node:events'
import { createServer } from 'node:net'
import { describe, expect, it } from 'vitest'
import type { PostOptions } from '../../../infra/safe-http/client.ts'
import { eventually } from '../../support/eventually.ts'
import {
  closeAfterTest,
  createTestClient,
  httpText,
  portOf,
  postTo,
  type RawRequest,
  startDns,
  startRawReceiver,
} from './raw-receiver.ts'

type Responder = (request: RawRequest) => void

const writes =
  (text: string): Responder =>
  ({ socket }) =>
    socket.write(text)
const ends =
  (text: string): Responder =>
  ({ socket }) =>
    socket.end(text)

/** Writes `piece` every 20 ms, without end. */
const trickles =
  (head: string, piece: string): Responder =>
  ({ socket }) => {
    socket.write(head)
    const timer = setInterval(() => socket.write(piece), 20)
    socket.on('close', () => clearInterval(timer))
  }
/** Writes `piece` as fast as it is read, without end. */
const floods =
  (head: string, piece: string): Responder =>
  ({ socket }) => {
    socket.write(head)
    const more = () => {
      while (!socket.destroyed && socket.write(piece));
    }
    socket.on('drain', more)
    more()
  }

/** Posts to a receiver with this responder. */
async function outcomeOf(respond: Responder, options: Partial<PostOptions> = {}) {
  const receiver = await startRawReceiver(respond)
  const url = `http://127.0.0.1:${receiver.port}/hook?a=b`
  const outcome = await createTestClient().post(postTo(url, { timeoutMs: 10_000, ...options }))
  return { outcome, receiver }
}

const ok = 'HTTP/1.1 200 X\r\n'
const chunked = `${ok}transfer-encoding: chunked\r\n\r\n`

describe('the request', () => {
  it('is a POST of exactly these bytes and headers over HTTP/1.1', async () => {
    const { outcome, receiver } = await outcomeOf(writes(httpText(200)))
    expect(outcome).toMatchObject({ kind: 'response', status: 200, retryAfter: undefined })
    const [head, body] = (receiver.requests[0] ?? '').split('\r\n\r\n')
    expect(head?.split('\r\n').sort()).toEqual(
      [
        'POST /hook?a=b HTTP/1.1',
        `host: 127.0.0.1:${receiver.port}`,
        'connection: keep-alive',
        'content-type: application/json',
        'Idempotency-Key: evt_1',
        'content-length: 10',
      ].sort(),
    )
    expect(Buffer.from(body ?? '', 'latin1').toString()).toBe('{"a":"ä"}')
  })

  it('is not sent if canSend returns false once connected', async () => {
    const { outcome, receiver } = await outcomeOf(writes(httpText(200)), {
      canSend: () => false,
    })
    expect(outcome).toMatchObject({ kind: 'failure', reason: 'dropped' })
    expect(receiver.requests).toEqual([])
  })

  it('is a GET without a body', async () => {
    const receiver = await startRawReceiver(writes(httpText(200, 'the file')))
    const url = `http://127.0.0.1:${receiver.port}/.well-known/a.txt`
    const outcome = await createTestClient().get({ url, maxBytes: 3 })
    expect(outcome).toMatchObject({ status: 200, body: Buffer.from('the') })
    expect(receiver.requests[0]).toMatch(/^GET \/\.well-known\/a\.txt HTTP\/1\.1\r\n.*\r\n\r\n$/s)
  })
})

describe('responses', () => {
  const hints = 'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\nretry-after: 1\r\n\r\n'
  it.each<[string, string, { status: number; body?: string; retryAfter?: string }]>([
    ['are returned as they are', httpText(503, 'x'), { status: 503, body: 'x' }],
    ['may have no body', 'HTTP/1.1 204 X\r\n\r\n', { status: 204 }],
    [
      'have Retry-After',
      httpText(429, '', 'Retry-After: 120\r\nRetry-After: 7\r\n'),
      { status: 429, retryAfter: '120' },
    ],
    ['follow 1xx responses', hints + hints + httpText(202), { status: 202 }],
    [
      'may be chunked',
      `${chunked}3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n`,
      { status: 200, body: 'abcde' },
    ],
    [
      'are not decompressed',
      httpText(200, 'not gzip', 'content-encoding: gzip\r\n'),
      { status: 200, body: 'not gzip' },
    ],
  ])('%s', async (_title, response, { status, body = '', retryAfter }) => {
    const { outcome } = await outcomeOf(writes(response))
    expect(outcome).toMatchObject({ kind: 'response', status, retryAfter, body: Buffer.from(body) })
  })

  it('are read up to 64 KiB; then the connection is closed', async () => {
    const { outcome, receiver } = await outcomeOf(
      floods(chunked, `4000\r\n${'x'.repeat(0x4000)}\r\n`),
    )
    expect(outcome).toMatchObject({ status: 200, body: Buffer.alloc(64 * 1024, 'x') })
    await eventually(() => expect(receiver.sockets.size).toBe(0))
  })

  it.each([
    [3, 'abc'],
    [6, 'abcdef'],
    [7, 'abcdef'],
  ])('are read up to maxBytes: %i', async (maxBytes, body) => {
    const { outcome } = await outcomeOf(writes(httpText(200, 'abcdef')), { maxBytes })
    expect(outcome).toMatchObject({ status: 200, body: Buffer.from(body) })
  })
})

describe('failures', () => {
  const half = `${ok}content-length: 10\r\n\r\nhalf`
  it.each<[string, string, Responder]>([
    ['reset', 'closes without a byte', ({ socket }) => socket.end()],
    ['reset', 'resets', ({ socket }) => socket.resetAndDestroy()],
    ['reset', 'stops in the headers', ends(`${ok}content-le`)],
    ['reset', 'stops in the body', ends(half)],
    ['reset', 'stops in a chunk', ends(`${chunked}a\r\nhalf`)],
    ['protocol', 'speaks another protocol', writes('220 smtp.example ESMTP\r\n')],
    [
      'protocol',
      'has two lengths',
      writes(`${ok}content-length: 1\r\ncontent-length: 2\r\n\r\nab`),
    ],
    ['protocol', 'has a bad chunk length', writes(`${chunked}zz\r\n`)],
    [
      'protocol',
      'has headers of 17 KiB',
      writes(httpText(200, '', `x: ${'x'.repeat(17 * 1024)}\r\n`)),
    ],
    ['protocol', 'sends endless headers', floods(ok, `x: ${'x'.repeat(1000)}\r\n`)],
    ['protocol', 'sends an unrequested 100 Continue', writes('HTTP/1.1 100 Continue\r\n\r\n')],
    [
      'protocol',
      'switches protocols',
      writes('HTTP/1.1 101 X\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n'),
    ],
    ['timeout', 'never responds', () => {}],
    ['timeout', 'stops in the body without closing', writes(half)],
    ['timeout', 'trickles headers', trickles(ok, 'x: y\r\n')],
    ['timeout', 'trickles its body', trickles(`${ok}content-length: 100000\r\n\r\n`, 'x')],
    ['timeout', 'sends endless 1xx responses', trickles('', 'HTTP/1.1 102 X\r\n\r\n')],
  ])('%s: a receiver that %s', async (reason, _what, respond) => {
    const timeoutMs = reason === 'timeout' ? 400 : 10_000
    const { outcome, receiver } = await outcomeOf(respond, { timeoutMs })
    const message = expect.stringMatching(/\w{3}/)
    expect(outcome).toMatchObject({ kind: 'failure', reason, message })
    expect(receiver.requests.length).toBe(1)
    if (reason === 'timeout') expect(outcome.durationMs).toBeGreaterThanOrEqual(399)
    await eventually(() => expect(receiver.sockets.size).toBe(0))
  })

  it('timeout: a receiver that reads nothing', async () => {
    const server = createServer((socket) => socket.pause())
    closeAfterTest(server)
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const client = createTestClient({ timeoutMs: 400 })
    const body = 'x'.repeat(20_000_000)
    const outcome = await client.post(postTo(`http://127.0.0.1:${portOf(server)}/`, { body }))
    expect(outcome).toMatchObject({ kind: 'failure', reason: 'timeout' })
  })

  it('connect: the port is closed', async () => {
    const server = createServer()
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const port = portOf(server)
    server.close()
    await once(server, 'close')
    const outcome = await createTestClient().post(postTo(`http://127.0.0.1:${port}/`))
    expect(outcome).toMatchObject({ kind: 'failure', reason: 'connect' })
    expect(JSON.stringify(outcome)).not.toContain('127.0.0.1')
  })

  it.each(['', 'nonsense', 'ftp://127.0.0.1/', 'file:///etc/passwd', 'https://'])(
    'address: the URL %j',
    async (url) => {
      expect(await createTestClient().post(postTo(url))).toMatchObject({
        kind: 'failure',
        reason: 'address',
      })
    },
  )
})

it('closing a client ends its requests and connections', async () => {
  const receiver = await startRawReceiver(({ socket, text }) => {
    if (text.includes('/fast')) socket.write(httpText(200))
  })
  const dns = await startDns(() => 'silent')
  const client = createTestClient({ dnsServers: [dns.address] })
  const url = `http://127.0.0.1:${receiver.port}`
  expect(await client.post(postTo(`${url}/fast`))).toMatchObject({ status: 200 })
  const posts = [
    client.post(postTo(`${url}/slow`)),
    client.post(postTo('http://unanswered.example/')),
  ]
  await eventually(() => expect([receiver.requests.length, dns.questions.length]).toEqual([2, 2]))
  await client.close()
  const closed = { kind: 'failure', reason: 'reset', message: 'Sending was stopped.' }
  expect(await Promise.all(posts)).toMatchObject([closed, closed])
  await eventually(() => expect(receiver.sockets.size).toBe(0))
  expect(await client.post(postTo(`${url}/fast`))).toMatchObject(closed)
  await client.close()
})
