import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect as connectHttp2 } from 'node:http2'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import type { FastifyInstance } from 'fastify'
import { pino } from 'pino'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createApp } from '../../../infra/http/app.ts'
import { createTlsListener, type TlsOptions } from '../../../infra/http/tls/listener.ts'
import hellos from '../../fixtures/tls-hellos/hellos.json' with { type: 'json' }
import { eventually } from '../../support/eventually.ts'
import {
  connectRawHttp2,
  fieldBlock,
  flag,
  frameOf,
  frameType,
  type RawHttp2,
  refusals,
  requestFrame,
  resetFrame,
  settingsFrame,
} from '../../support/raw-http2.ts'
import { createAuthority } from '../../support/tls-certificates.ts'

// RFC 9113, 7.
const code = { protocolError: 1, refusedStream: 7, cancel: 8, enhanceYourCalm: 11 }

const authority = createAuthority()
let folder: string
let app: FastifyInstance
let port: number
let seen: number

async function start(options: Partial<TlsOptions> = {}): Promise<void> {
  const logger = pino({ level: 'silent' })
  app = await createApp({ logger, random: randomBytes, publicUrl: 'https://localhost' })
  seen = 0
  app.get('/seen', ({ headers }) => {
    seen++
    return { host: headers.host }
  })
  app.get('/beside', () => 'answered')
  app.get('/held', async ({ raw }) => {
    seen++
    await once(raw, 'close')
  })
  app.get('/page', () => 'x'.repeat(1000))
  app.post('/echo', ({ body }) => body)
  const files = { certFile: path.join(folder, 'tls.pem'), keyFile: path.join(folder, 'tls.key') }
  const tls = await createTlsListener(app, { ...files, logger, closeMs: 50, ...options })
  await app.listen({ port: 0, host: '127.0.0.1' })
  port = await tls.listen({ port: 0, host: '127.0.0.1' })
}

beforeEach(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'tidegate-abuse-'))
  const { cert, key } = authority.issue({ host: 'localhost' })
  writeFileSync(path.join(folder, 'tls.pem'), cert)
  writeFileSync(path.join(folder, 'tls.key'), key)
})

afterEach(async () => {
  await app.close()
  rmSync(folder, { recursive: true })
})

/** Somebody else's requests are answered all the while: at least twenty of them. */
async function answersOthers<T>(attack: () => Promise<T>): Promise<T> {
  const session = connectHttp2(`https://localhost:${port}`, { ca: authority.ca })
  await once(session, 'connect')
  let isOver = false
  const asked = (async () => {
    for (let answered = 0; !isOver || answered < 20; answered++) {
      const stream = session.request({ ':path': '/beside' })
      const [head] = await once(stream, 'response')
      expect([head[':status'], await text(stream)]).toEqual([200, 'answered'])
    }
  })()
  const [result] = await Promise.all([
    attack().finally(() => {
      isOver = true
    }),
    asked,
  ])
  session.close()
  return result
}

const odd = (count: number) => Array.from({ length: count }, (_, n) => 2 * n + 1)
const of = (path: string, method = 'GET'): [string, string][] => [
  [':method', method],
  [':scheme', 'https'],
  [':path', path],
]
const to = (path: string, method?: string) => [...of(path, method), [':authority', 'localhost'] as const]

/** A request whose fields take several frames. */
function longRequest(fields: Parameters<typeof fieldBlock>[0]): Buffer[] {
  const block = fieldBlock(fields)
  const parts = Array.from({ length: Math.ceil(block.length / 16_384) }, (_, n) =>
    block.subarray(n * 16_384, (n + 1) * 16_384),
  )
  return parts.map((payload, n) => {
    const flags = (n === 0 ? flag.endStream : 0) | (n === parts.length - 1 ? flag.endHeaders : 0)
    return frameOf({ type: n === 0 ? frameType.headers : frameType.continuation, flags, stream: 1, payload })
  })
}

const statusOf = async (raw: RawHttp2, stream = 1) => {
  const answer = await eventually(() => {
    const found = raw.frames.find((one) => one.type === frameType.data && one.stream === stream)
    if (!found) throw new Error('no answer yet')
    return found
  })
  return JSON.parse(answer.payload.toString())
}

describe('a connection is ended, and others are answered', () => {
  beforeEach(() => start())

  const many = (frame: Buffer) => Array.from({ length: 20_000 }, () => frame)
  const open = frameOf({
    type: frameType.headers,
    flags: flag.endHeaders,
    stream: 1,
    payload: fieldBlock(to('/echo', 'POST')),
  })
  test.each<[string, () => Buffer[]]>([
    [
      'that resets what it begins',
      () => odd(5000).flatMap((stream) => [requestFrame(stream, to('/seen')), resetFrame(stream)]),
    ],
    [
      'that goes on with its headers for ever',
      () => [
        frameOf({
          type: frameType.headers,
          flags: flag.endStream,
          stream: 1,
          payload: fieldBlock(to('/seen')),
        }),
        ...many(frameOf({ type: frameType.continuation, stream: 1, payload: fieldBlock([['x', 'y']]) })),
      ],
    ],
    ['with headers that nobody has', () => longRequest([...to('/seen'), ['x-long', 'x'.repeat(200_000)]])],
    ['that sends nothing but settings', () => many(settingsFrame([[3, 100]]))],
    ['that sends nothing but empty pieces of a body', () => [open, ...many(frameOf({ stream: 1 }))]],
  ])('%s', async (_, frames) => {
    const raw = await answersOthers(async () => {
      const raw = await connectRawHttp2(port)
      raw.send(...frames())
      await raw.closed
      return raw
    })
    expect(raw.isClosed()).toBe(true)
    expect(seen).toBeLessThan(2500)
  })
})

describe('a stream is refused, and others are answered', () => {
  beforeEach(() => start())

  const fields = (count: number) => Array.from({ length: count }, (_, n) => [`x-${n}`, 'y'] as const)
  // An entry of the table that compresses fields, and 10,000 times that entry: 38 MB.
  const bomb = Buffer.concat([
    ...[fieldBlock(to('/seen')), Buffer.from([0x40, 1]), Buffer.from('x')],
    ...[Buffer.from([127, 0xd9, 28]), Buffer.alloc(3800, 'y'), Buffer.alloc(10_000, 0x80 | 62)],
  ])
  test.each([
    ['more fields than anybody has', requestFrame(1, [...to('/seen'), ...fields(200)])],
    [
      'fields that are large once they are unpacked',
      frameOf({ type: frameType.headers, flags: flag.endStream | flag.endHeaders, stream: 1, payload: bomb }),
    ],
  ])('with %s', async (_, frame) => {
    const raw = await answersOthers(async () => {
      const raw = await connectRawHttp2(port)
      raw.send(frame)
      await eventually(() => expect(refusals(raw.frames).resets).toEqual([code.enhanceYourCalm]))
      return raw
    })
    expect(seen).toBe(0)
    raw.end()
  })

  test('that is one of too many at once', async () => {
    await answersOthers(async () => {
      const raw = await connectRawHttp2(port)
      raw.send(...odd(500).map((stream) => requestFrame(stream, to('/held'))))
      await eventually(() => expect(refusals(raw.frames).resets).toHaveLength(400))
      expect(new Set(refusals(raw.frames).resets)).toEqual(new Set([code.refusedStream]))
      expect(seen).toBe(100)
      raw.end()
    })
  })

  test.each([
    ['no host', of('/seen')],
    ['two hosts', [...of('/seen'), ['host', 'a'], ['host', 'b']] as const],
    ['two authorities', [...to('/seen'), [':authority', 'b']] as const],
    ['an authority that is no host', [...of('/seen'), [':authority', 'a b']] as const],
  ])('with %s', async (_, fields) => {
    const raw = await connectRawHttp2(port)
    raw.send(requestFrame(1, fields))
    await eventually(() => expect(refusals(raw.frames).resets).toEqual([code.protocolError]))
    expect(seen).toBe(0)
    raw.end()
  })

  test.each([
    ['the host where there is no authority', [...of('/seen'), ['host', 'a']] as const, 'a'],
    ['the authority, and no other host', [...to('/seen'), ['host', 'a']] as const, 'localhost'],
  ])('unless it names %s', async (_, fields, host) => {
    const raw = await connectRawHttp2(port)
    raw.send(requestFrame(1, fields))
    expect(await statusOf(raw)).toEqual({ host })
    raw.end()
  })

  test('by the app where headers are larger than on HTTP/1.1', async () => {
    const raw = await connectRawHttp2(port)
    raw.send(...longRequest([...to('/seen'), ['x-long', 'x'.repeat(20_000)]]))
    expect(await statusOf(raw)).toMatchObject({ error: { code: 'request.headers_too_large' } })
    expect(seen).toBe(0)
    raw.end()
  })
})

describe('what stands still is cut off, and others are answered', () => {
  test('answers that nobody takes, although their connection is busy', async () => {
    await start({ idleMs: 2500 })
    await answersOthers(async () => {
      const raw = await connectRawHttp2(port, [[4, 0]])
      raw.send(...odd(100).map((stream) => requestFrame(stream, to('/page'))))
      await eventually(() => {
        raw.send(frameOf({ type: frameType.ping, payload: Buffer.alloc(8) }))
        expect(refusals(raw.frames).resets).toEqual(Array.from({ length: 100 }, () => code.cancel))
      })
      // The connection is closed afterwards, and at once where it has been idle for as long as they had.
      const ends = raw.frames.filter(({ type }) => type === frameType.reset || type === frameType.goaway)
      expect(ends.slice(0, 100).map(({ type }) => type)).toEqual(Array(100).fill(frameType.reset))
      await raw.closed
    })
  })

  test('a body that does not end, although its connection is busy', async () => {
    await start({ requestMs: 200 })
    await answersOthers(async () => {
      const raw = await connectRawHttp2(port)
      const fields = [...to('/echo', 'POST'), ['content-type', 'application/json'] as const]
      raw.send(
        frameOf({ type: frameType.headers, flags: flag.endHeaders, stream: 1, payload: fieldBlock(fields) }),
      )
      await eventually(() => {
        raw.send(frameOf({ stream: 1, payload: Buffer.from(' ') }))
        expect(refusals(raw.frames).resets).toEqual([code.cancel])
      })
      raw.end()
    })
  })

  test('handshakes that go no further than a hello', async () => {
    await start({ handshakeMs: 3000, maxUnfinished: 64 })
    const hello = Buffer.from(hellos[0]?.hello ?? '', 'base64')
    await answersOthers(async () => {
      // One place is for whoever asks beside.
      const sockets = Array.from({ length: 63 }, () => {
        const socket = connect(port, '127.0.0.1')
          .on('error', () => {})
          .resume()
        socket.write(hello)
        return socket
      })
      await Promise.all(sockets.map((socket) => once(socket, 'close')))
    })
  })
})
