import { once } from 'node:events'
import { createServer } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { describe, expect, it, test } from 'vitest'
import { startDnsServer } from '../../support/dns-server.ts'
import { eventually } from '../../support/eventually.ts'
import {
  afterwards,
  answerOf,
  createTestClient,
  portOf,
  postTo,
  type RawRequest,
  startRawReceiver,
  track,
} from './raw-receiver.ts'

/** What the client makes of a receiver that answers so. */
async function outcomeOf(answer: (request: RawRequest) => void, options = {}) {
  const receiver = await startRawReceiver(answer)
  const client = createTestClient({ timeoutMs: 10_000, ...options })
  const outcome = await client.post(postTo(`http://127.0.0.1:${receiver.port}/hook?a=b`))
  return { outcome, receiver }
}

describe('the request', () => {
  it('is a POST of exactly the bytes, with the headers given, over HTTP/1.1', async () => {
    const { outcome, receiver } = await outcomeOf(({ socket }) =>
      socket.write(answerOf(200, 'fine')),
    )
    expect(outcome).toMatchObject({ kind: 'response', status: 200, retryAfter: undefined })
    expect(outcome.kind === 'response' && outcome.body.toString()).toBe('fine')
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

  it('is sent only if it still may be when there is a connection', async () => {
    const receiver = await startRawReceiver(({ socket }) => socket.write(answerOf(200, 'fine')))
    const client = createTestClient({ timeoutMs: 10_000 })
    const post = postTo(`http://127.0.0.1:${receiver.port}/hook`)
    const dropped = await client.post({ ...post, mayBegin: () => false })
    expect(dropped).toMatchObject({ kind: 'failure', reason: 'dropped' })
    expect(await client.post({ ...post, mayBegin: () => true })).toMatchObject({ status: 200 })
    expect(receiver.requests).toHaveLength(1)
  })

  it('is a GET without a body, where something is to be read', async () => {
    const receiver = await startRawReceiver(({ socket }) => socket.write(answerOf(200, 'the file')))
    const client = createTestClient({ timeoutMs: 10_000 })
    const outcome = await client.get({
      url: `http://127.0.0.1:${receiver.port}/.well-known/a.txt`,
      maxBytes: 3,
    })
    expect(outcome.kind === 'response' && [outcome.status, outcome.body.toString()]).toEqual([
      200,
      'the',
    ])
    expect(receiver.requests[0]).toMatch(/^GET \/\.well-known\/a\.txt HTTP\/1\.1\r\n/)
    expect(receiver.requests[0]).toMatch(/\r\n\r\n$/)
  })

  it('takes the time it took', async () => {
    const { outcome } = await outcomeOf(({ socket }) => {
      setTimeout(() => socket.write(answerOf(200)), 100)
    })
    expect(outcome.durationMs).toBeGreaterThanOrEqual(99)
    expect(Number.isInteger(outcome.durationMs)).toBe(true)
  })
})

describe('responses', () => {
  it.each([200, 201, 204, 299, 301, 302, 304, 307, 308, 400, 404, 410, 429, 500, 503, 599])(
    'of %i stand as they are',
    async (status) => {
      const head = `HTTP/1.1 ${status} X\r\nlocation: http://127.0.0.1:1/\r\n`
      const { outcome } = await outcomeOf(({ socket }) =>
        socket.write(
          status === 204 || status === 304 ? `${head}\r\n` : `${head}content-length: 0\r\n\r\n`,
        ),
      )
      expect(outcome).toMatchObject({ kind: 'response', status })
    },
  )

  it('say when to come back', async () => {
    const { outcome } = await outcomeOf(({ socket }) =>
      socket.write(answerOf(429, '', 'Retry-After: 120\r\nRetry-After: 7\r\n')),
    )
    expect(outcome).toMatchObject({ status: 429, retryAfter: '120' })
  })

  it('come after 1xx ones', async () => {
    const hints = 'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\nretry-after: 1\r\n\r\n'
    const { outcome } = await outcomeOf(({ socket }) =>
      socket.write(hints + hints + answerOf(202, 'x')),
    )
    expect(outcome).toMatchObject({ kind: 'response', status: 202, retryAfter: undefined })
  })

  it('may have a body that ends with the connection', async () => {
    const { outcome } = await outcomeOf(({ socket }) =>
      socket.end('HTTP/1.1 200 X\r\nconnection: close\r\n\r\nall of it'),
    )
    expect(outcome.kind === 'response' && outcome.body.toString()).toBe('all of it')
  })

  it('may be chunked', async () => {
    const { outcome } = await outcomeOf(({ socket }) =>
      socket.write(
        'HTTP/1.1 200 X\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n',
      ),
    )
    expect(outcome.kind === 'response' && outcome.body.toString()).toBe('abcde')
  })

  it('are not decompressed', async () => {
    const { outcome } = await outcomeOf(({ socket }) =>
      socket.write(answerOf(200, 'not gzip', 'content-encoding: gzip\r\n')),
    )
    expect(outcome.kind === 'response' && outcome.body.toString()).toBe('not gzip')
  })

  it('are read to 64 KiB, and the connection of an endless one is closed', async () => {
    let isClosed = false
    const { outcome, receiver } = await outcomeOf(({ socket }) => {
      socket.on('close', () => {
        isClosed = true
      })
      socket.write('HTTP/1.1 200 X\r\ntransfer-encoding: chunked\r\n\r\n')
      const chunk = `4000\r\n${'x'.repeat(0x4000)}\r\n`
      const more = () => {
        while (!socket.destroyed && socket.write(chunk));
      }
      socket.on('drain', more)
      more()
    })
    expect(outcome).toMatchObject({ kind: 'response', status: 200 })
    expect(outcome.kind === 'response' && outcome.body.length).toBe(64 * 1024)
    await eventually(() => expect(isClosed && receiver.sockets.size === 0).toBe(true))
  })

  it('are read to the length asked for', async () => {
    const receiver = await startRawReceiver(({ socket }) => socket.write(answerOf(200, 'abcdef')))
    const client = createTestClient()
    const url = `http://127.0.0.1:${receiver.port}/`
    for (const [maxBytes, body] of [
      [3, 'abc'],
      [6, 'abcdef'],
      [7, 'abcdef'],
    ] as const) {
      const outcome = await client.post(postTo(url, { maxBytes }))
      expect(outcome.kind === 'response' && outcome.body.toString()).toBe(body)
    }
  })
})

describe('what is no response', () => {
  it.each<[string, string, (request: RawRequest) => void]>([
    ['reset', 'closes without a byte', ({ socket }) => socket.end()],
    ['reset', 'resets', ({ socket }) => socket.resetAndDestroy()],
    ['reset', 'stops in the status line', ({ socket }) => socket.end('HTTP/1.1 2')],
    ['reset', 'stops in the headers', ({ socket }) => socket.end('HTTP/1.1 200 X\r\ncontent-le')],
    [
      'reset',
      'stops in the body',
      ({ socket }) => socket.end('HTTP/1.1 200 X\r\ncontent-length: 10\r\n\r\nhalf'),
    ],
    [
      'reset',
      'stops in the body of a closing connection',
      ({ socket }) =>
        socket.end('HTTP/1.1 200 X\r\nconnection: close\r\ncontent-length: 10\r\n\r\nhalf'),
    ],
    [
      'reset',
      'stops in a chunk',
      ({ socket }) => socket.end('HTTP/1.1 200 X\r\ntransfer-encoding: chunked\r\n\r\na\r\nhalf'),
    ],
    [
      'reset',
      'stops in a chunk of a closing connection',
      ({ socket }) =>
        socket.end(
          'HTTP/1.1 200 X\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\na\r\nhalf',
        ),
    ],
    [
      'reset',
      'resets in the body',
      ({ socket }) =>
        socket.write('HTTP/1.1 200 X\r\ncontent-length: 10\r\n\r\nhalf', () =>
          setTimeout(() => socket.resetAndDestroy(), 50),
        ),
    ],
    [
      'protocol',
      'speaks another protocol',
      ({ socket }) => socket.write('220 smtp.example ESMTP\r\n'),
    ],
    ['protocol', 'speaks HTTP/0.9', ({ socket }) => socket.end('<html>hello</html>')],
    [
      'protocol',
      'has no number for a status',
      ({ socket }) => socket.write('HTTP/1.1 abc X\r\n\r\n'),
    ],
    [
      'protocol',
      'has two lengths',
      ({ socket }) =>
        socket.write('HTTP/1.1 200 X\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab'),
    ],
    [
      'protocol',
      'has a bad chunk length',
      ({ socket }) => socket.write('HTTP/1.1 200 X\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n'),
    ],
    [
      'protocol',
      'has headers of 17 KiB',
      ({ socket }) => socket.write(answerOf(200, '', `x: ${'x'.repeat(17 * 1024)}\r\n`)),
    ],
    [
      'protocol',
      'has headers without end',
      ({ socket }) => {
        socket.write('HTTP/1.1 200 X\r\n')
        const more = () => {
          while (!socket.destroyed && socket.write(`x: ${'x'.repeat(1000)}\r\n`));
        }
        socket.on('drain', more)
        more()
      },
    ],
    [
      'protocol',
      'says to go on unasked',
      ({ socket }) => socket.write('HTTP/1.1 100 Continue\r\n\r\n'),
    ],
    [
      'protocol',
      'changes the protocol',
      ({ socket }) => socket.write('HTTP/1.1 101 X\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n'),
    ],
    ['timeout', 'never answers', () => {}],
    [
      'timeout',
      'stops without closing',
      ({ socket }) => socket.write('HTTP/1.1 200 X\r\nx: y\r\n'),
    ],
    [
      'timeout',
      'stops in the body without closing',
      ({ socket }) => socket.write('HTTP/1.1 200 X\r\ncontent-length: 10\r\n\r\nhalf'),
    ],
    [
      'timeout',
      'trickles headers',
      ({ socket }) => {
        socket.write('HTTP/1.1 200 X\r\n')
        const timer = setInterval(() => socket.write('x: y\r\n'), 20)
        socket.on('close', () => clearInterval(timer))
      },
    ],
    [
      'timeout',
      'trickles its body',
      ({ socket }) => {
        socket.write('HTTP/1.1 200 X\r\ncontent-length: 100000\r\n\r\n')
        const timer = setInterval(() => socket.write('x'), 20)
        socket.on('close', () => clearInterval(timer))
      },
    ],
    [
      'timeout',
      'sends 1xx for ever',
      ({ socket }) => {
        const timer = setInterval(() => socket.write('HTTP/1.1 102 X\r\n\r\n'), 20)
        socket.on('close', () => clearInterval(timer))
      },
    ],
  ])('%s: a receiver that %s', async (reason, _what, answer) => {
    const timeoutMs = reason === 'timeout' ? 400 : 10_000
    const { outcome, receiver } = await outcomeOf(answer, { timeoutMs })
    expect(outcome).toMatchObject({
      kind: 'failure',
      reason,
      message: expect.stringMatching(/\w{3}/),
    })
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

  it('timeout: the time of one post may be shorter than the usual', async () => {
    const receiver = await startRawReceiver(() => {})
    const client = createTestClient({ timeoutMs: 60_000 })
    const outcome = await client.post(
      postTo(`http://127.0.0.1:${receiver.port}/`, { timeoutMs: 200 }),
    )
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
    expect(outcome.kind === 'failure' && outcome.message).not.toContain('127.0.0.1')
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

test('a connection that is never accepted times out', async () => {
  // Only the kernel's queue takes connections of a server that does not accept, and only so many.
  const source = `
    const { createServer } = require('node:net')
    const { parentPort } = require('node:worker_threads')
    const server = createServer().listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
      parentPort.postMessage(server.address().port)
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
    })`
  const worker = new Worker(source, { eval: true })
  afterwards(() => worker.terminate())
  const [port] = await once(worker, 'message')
  const client = createTestClient({ connectTimeoutMs: 500, timeoutMs: 10_000 })
  const url = `http://127.0.0.1:${port}/`
  const outcomes = await Promise.all(
    Array.from({ length: 8 }, () => client.post(postTo(url, { timeoutMs: 4000 }))),
  )
  const failures = outcomes.filter((outcome) => outcome.kind === 'failure')
  const late = failures.filter(({ reason }) => reason === 'timeout')
  expect(late.length).toBe(outcomes.length)
  // Those that found no room ended with the connection's time, the others with the post's.
  expect(late.map(({ message }) => message)).toContain(
    'The receiver did not accept a connection in time.',
  )
})

describe('the end of a client', () => {
  it('ends what is under way, and leaves no connection', async () => {
    const receiver = await startRawReceiver(({ socket, text }) => {
      if (text.includes('/fast')) socket.write(answerOf(200))
    })
    const dns = await startDnsServer(() => 'silent')
    afterwards(() => dns.close())
    const client = createTestClient({ dnsServers: [dns.address] })
    const url = `http://127.0.0.1:${receiver.port}`
    expect(await client.post(postTo(`${url}/fast`))).toMatchObject({ status: 200 })
    const posts = [
      client.post(postTo(`${url}/slow`)),
      client.post(postTo('http://unanswered.example/')),
    ]
    await eventually(() => expect([receiver.requests.length, dns.questions.length]).toEqual([2, 2]))
    await client.close()
    for (const outcome of await Promise.all(posts)) {
      expect(outcome).toMatchObject({
        kind: 'failure',
        reason: 'reset',
        message: 'Sending was stopped.',
      })
    }
    await eventually(() => expect(receiver.sockets.size).toBe(0))
    expect(await client.post(postTo(`${url}/fast`))).toMatchObject({
      kind: 'failure',
      reason: 'reset',
    })
    await client.close()
  })

  it('leaves no handle behind, whatever came of the posts', async () => {
    const receiver = await startRawReceiver(({ socket, text }) => {
      if (text.includes('/ok')) socket.write(answerOf(200))
      if (text.includes('/endless')) socket.write(`HTTP/1.1 200 X\r\n\r\n${'x'.repeat(100_000)}`)
      if (text.includes('/reset')) socket.resetAndDestroy()
    })
    await turn()
    const before = handles()
    const client = createTestClient({ timeoutMs: 300 })
    const paths = Array.from({ length: 25 }, () => ['/ok', '/endless', '/reset', '/silent']).flat()
    await Promise.all(
      paths.map((path) => client.post(postTo(`http://127.0.0.1:${receiver.port}${path}`))),
    )
    await client.close()
    // The receiver's own sockets are among them.
    await eventually(() => {
      const after = handles()
      for (const kind of Object.keys(after))
        expect(after[kind], kind).toBeLessThanOrEqual(before[kind] ?? 0)
    })
  })
})

function handles(): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const kind of process.getActiveResourcesInfo()) {
    if (/TCP|TLS|Timeout|Immediate|UDP/.test(kind)) counts[kind] = (counts[kind] ?? 0) + 1
  }
  return counts
}
