import { once } from 'node:events'
import { createServer } from 'node:net'
import { describe, expect, it } from 'vitest'
import type { PostOptions } from '../../../infra/safe-http/client.ts'
import { eventually } from '../../support/eventually.ts'
import {
  answerOf,
  createTestClient,
  portOf,
  postTo,
  type RawRequest,
  startNames,
  startRawReceiver,
  track,
} from './raw-receiver.ts'

type Answer = (request: RawRequest) => void

const writes =
  (text: string): Answer =>
  ({ socket }) =>
    socket.write(text)
const ends =
  (text: string): Answer =>
  ({ socket }) =>
    socket.end(text)

/** Writes `piece` for ever: every 20 ms, or as fast as it is read. */
const trickles =
  (head: string, piece: string): Answer =>
  ({ socket }) => {
    socket.write(head)
    const timer = setInterval(() => socket.write(piece), 20)
    socket.on('close', () => clearInterval(timer))
  }
const floods =
  (head: string, piece: string): Answer =>
  ({ socket }) => {
    socket.write(head)
    const more = () => {
      while (!socket.destroyed && socket.write(piece));
    }
    socket.on('drain', more)
    more()
  }

/** Posts to a receiver that answers so. */
async function outcomeOf(answer: Answer, options: Partial<PostOptions> = {}) {
  const receiver = await startRawReceiver(answer)
  const url = `http://127.0.0.1:${receiver.port}/hook?a=b`
  const outcome = await createTestClient().post(postTo(url, { timeoutMs: 10_000, ...options }))
  return { outcome, receiver }
}

const ok = 'HTTP/1.1 200 X\r\n'
const chunked = `${ok}transfer-encoding: chunked\r\n\r\n`

describe('the request', () => {
  it('is a POST of exactly the bytes, with the headers given, over HTTP/1.1', async () => {
    const { outcome, receiver } = await outcomeOf(writes(answerOf(200)))
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

  it('is not sent if it may no longer be when there is a connection', async () => {
    const { outcome, receiver } = await outcomeOf(writes(answerOf(200)), { canSend: () => false })
    expect(outcome).toMatchObject({ kind: 'failure', reason: 'dropped' })
    expect(receiver.requests).toEqual([])
  })

  it('is a GET without a body, where something is to be read', async () => {
    const receiver = await startRawReceiver(writes(answerOf(200, 'the file')))
    const url = `http://127.0.0.1:${receiver.port}/.well-known/a.txt`
    const outcome = await createTestClient().get({ url, maxBytes: 3 })
    expect(outcome).toMatchObject({ status: 200, body: Buffer.from('the') })
    expect(receiver.requests[0]).toMatch(/^GET \/\.well-known\/a\.txt HTTP\/1\.1\r\n.*\r\n\r\n$/s)
  })
})

describe('responses', () => {
  const hints = 'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\nretry-after: 1\r\n\r\n'
  it.each<[string, string, { status: number; body?: string; retryAfter?: string }]>([
    ['stand as they are', answerOf(503, 'x'), { status: 503, body: 'x' }],
    ['may have no body', 'HTTP/1.1 204 X\r\n\r\n', { status: 204 }],
    [
      'say when to come back',
      answerOf(429, '', 'Retry-After: 120\r\nRetry-After: 7\r\n'),
      { status: 429, retryAfter: '120' },
    ],
    ['come after 1xx ones', hints + hints + answerOf(202), { status: 202 }],
    [
      'may be chunked',
      `${chunked}3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n`,
      { status: 200, body: 'abcde' },
    ],
    [
      'are not decompressed',
      answerOf(200, 'not gzip', 'content-encoding: gzip\r\n'),
      { status: 200, body: 'not gzip' },
    ],
  ])('%s', async (_what, answer, { status, body = '', retryAfter }) => {
    const { outcome } = await outcomeOf(writes(answer))
    expect(outcome).toMatchObject({ kind: 'response', status, retryAfter, body: Buffer.from(body) })
  })

  it('are read to 64 KiB, and the connection of an endless one is closed', async () => {
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
  ])('are read to the %i bytes asked for', async (maxBytes, body) => {
    const { outcome } = await outcomeOf(writes(answerOf(200, 'abcdef')), { maxBytes })
    expect(outcome).toMatchObject({ status: 200, body: Buffer.from(body) })
  })
})

describe('what is no response', () => {
  const half = `${ok}content-length: 10\r\n\r\nhalf`
  it.each<[string, string, Answer]>([
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
      writes(answerOf(200, '', `x: ${'x'.repeat(17 * 1024)}\r\n`)),
    ],
    ['protocol', 'has headers without end', floods(ok, `x: ${'x'.repeat(1000)}\r\n`)],
    ['protocol', 'says to go on unasked', writes('HTTP/1.1 100 Continue\r\n\r\n')],
    [
      'protocol',
      'changes the protocol',
      writes('HTTP/1.1 101 X\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n'),
    ],
    ['timeout', 'never answers', () => {}],
    ['timeout', 'stops in the body without closing', writes(half)],
    ['timeout', 'trickles headers', trickles(ok, 'x: y\r\n')],
    ['timeout', 'trickles its body', trickles(`${ok}content-length: 100000\r\n\r\n`, 'x')],
    ['timeout', 'sends 1xx for ever', trickles('', 'HTTP/1.1 102 X\r\n\r\n')],
  ])('%s: a receiver that %s', async (reason, _what, answer) => {
    const timeoutMs = reason === 'timeout' ? 400 : 10_000
    const { outcome, receiver } = await outcomeOf(answer, { timeoutMs })
    const message = expect.stringMatching(/\w{3}/)
    expect(outcome).toMatchObject({ kind: 'failure', reason, message })
    expect(receiver.requests.length).toBe(1)
    if (reason === 'timeout') expect(outcome.durationMs).toBeGreaterThanOrEqual(399)
    await eventually(() => expect(receiver.sockets.size).toBe(0))
  })

  it('timeout: a receiver that reads nothing', async () => {
    const server = createServer((socket) => socket.pause())
    track(server)
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const client = createTestClient({ timeoutMs: 400 })
    const body = 'x'.repeat(20_000_000)
    const outcome = await client.post(postTo(`http://127.0.0.1:${portOf(server)}/`, { body }))
    expect(outcome).toMatchObject({ kind: 'failure', reason: 'timeout' })
  })

  it('connect: nobody listens', async () => {
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

it('the end of a client ends what is under way, and leaves no connection', async () => {
  const receiver = await startRawReceiver(({ socket, text }) => {
    if (text.includes('/fast')) socket.write(answerOf(200))
  })
  const dns = await startNames(() => 'silent')
  const client = createTestClient({ dnsServers: [dns.address] })
  const url = `http://127.0.0.1:${receiver.port}`
  expect(await client.post(postTo(`${url}/fast`))).toMatchObject({ status: 200 })
  const posts = [
    client.post(postTo(`${url}/slow`)),
    client.post(postTo('http://unanswered.example/')),
  ]
  await eventually(() => expect([receiver.requests.length, dns.questions.length]).toEqual([2, 2]))
  await client.close()
  const stopped = { kind: 'failure', reason: 'reset', message: 'Sending was stopped.' }
  expect(await Promise.all(posts)).toMatchObject([stopped, stopped])
  await eventually(() => expect(receiver.sockets.size).toBe(0))
  expect(await client.post(postTo(`${url}/fast`))).toMatchObject(stopped)
  await client.close()
})
