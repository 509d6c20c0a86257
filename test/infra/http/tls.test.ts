import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { type ClientHttp2Session, connect as connectHttp2, constants } from 'node:http2'
import { request as requestHttp1 } from 'node:https'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { connect as connectTls } from 'node:tls'
import type { FastifyInstance } from 'fastify'
import { pino } from 'pino'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createApp } from '../../../infra/http/app.ts'
import { readCertificate } from '../../../infra/http/tls/certificate.ts'
import { createTlsListener } from '../../../infra/http/tls/listener.ts'
import { eventually } from '../../support/eventually.ts'
import { createAuthority } from '../../support/tls-certificates.ts'

const authority = createAuthority()
const node24 = /^t13d5\d1[0-9](h[12]|00)_[0-9a-f]{12}_[0-9a-f]{12}$/

let folder: string
let app: FastifyInstance
let port: number
let release: () => void
let isStopping: boolean
let waiting: number

const files = () => ({ certFile: path.join(folder, 'tls.pem'), keyFile: path.join(folder, 'tls.key') })

function writeCertificate(host = 'localhost') {
  const { cert, key } = authority.issue({ host })
  writeFileSync(files().certFile, cert)
  writeFileSync(files().keyFile, key)
}

const maxUnfinished = 8

async function start(options: { handshakeMs?: number } = {}) {
  const logger = pino({ level: 'silent' })
  const app = await createApp({
    ...{ logger, random: randomBytes, publicUrl: 'https://localhost', isStopping: () => isStopping },
    ...{ trustedProxies: ['127.0.0.3'], edgeHeaders: { ja4: 'x-ja4' } },
  })
  const held = new Promise<void>((resolve) => {
    release = resolve
  })
  app.get('/seen', ({ handshake, ip, headers, raw }) => ({
    ...{ handshake, ip, host: headers.host, http: raw.httpVersion },
  }))
  app.post('/echo', ({ body }) => body)
  app.get('/held', async () => {
    waiting++
    await held
    return { ended: true }
  })
  const tls = await createTlsListener(app, {
    ...{ ...files(), logger, maxUnfinished, ...options },
    ...{ reloadMs: 20, closeMs: 10_000 },
  })
  await app.listen({ port: 0, host: '127.0.0.1' })
  return { app, port: await tls.listen({ port: 0, host: '127.0.0.1' }) }
}

beforeEach(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'tidegate-tls-'))
  writeCertificate()
  isStopping = false
  waiting = 0
  const started = await start()
  app = started.app
  port = started.port
})

afterEach(async () => {
  release()
  await app.close()
  rmSync(folder, { recursive: true })
})

const http2 = (options = {}) =>
  connectHttp2(`https://localhost:${port}`, { ca: authority.ca, ...options }).on('error', () => {})

async function overHttp2(session: ClientHttp2Session, headers: Record<string, string>, body?: string) {
  const stream = session.request(headers)
  stream.end(body)
  const [answer] = await once(stream, 'response')
  return { status: answer[':status'], headers: answer, json: JSON.parse(await text(stream)) }
}

async function overHttp1(url: string, headers = {}, body?: string, options = {}) {
  const sent = requestHttp1(`https://localhost:${port}${url}`, {
    ca: authority.ca,
    headers,
    method: body ? 'POST' : 'GET',
    ...options,
  })
  sent.end(body)
  const [answer] = await once(sent, 'response')
  return { status: answer.statusCode, headers: answer.headers, json: JSON.parse(await text(answer)) }
}

const json = { 'content-type': 'application/json' }

describe('over TLS', () => {
  test('HTTP/1.1 and HTTP/2 are answered, with the JA4 of their connection', async () => {
    const session = http2()
    const second = await overHttp2(session, { ':path': '/seen' })
    session.close()
    const first = await overHttp1('/seen')
    expect([first.json.http, second.json.http]).toEqual(['1.1', '2.0'])
    for (const { json: seen } of [first, second]) {
      expect(seen).toMatchObject({ ip: '127.0.0.1', host: `localhost:${port}` })
      expect(seen.handshake.ja4).toMatch(node24)
    }
    expect(second.json.handshake.ja4).toContain('h2_')
  })

  test('bodies and refusals are those of the app', async () => {
    const session = http2()
    const post = { ':path': '/echo', ':method': 'POST', ...json }
    expect(await overHttp2(session, post, '{"a":1}')).toMatchObject({ status: 200, json: { a: 1 } })
    expect(await overHttp1('/echo', json, '{"a":1}')).toMatchObject({ status: 200, json: { a: 1 } })
    const lost = await overHttp2(session, { ':path': '/nowhere' })
    expect(lost).toMatchObject({ status: 404, json: { error: { code: 'request.not_found' } } })
    const large = await overHttp2(session, post, JSON.stringify('x'.repeat(300_000)))
    expect(large.status).toBe(413)
    expect(large.headers['x-request-id']).toMatch(/^req_/)
    session.close()
  })

  test('a hello in many pieces is read, and one of a trusted proxy that forwards a client does not count', async () => {
    const socket = connect(port, '127.0.0.1')
    const slow = trickle(socket)
    const tls = connectTls({ socket: slow, host: 'localhost', servername: 'localhost', ca: authority.ca })
    const headers = { 'x-forwarded-for': '203.0.113.9', 'x-ja4': 't13d1517h2_8daaf6152771_cb7bf5808d99' }
    const forged = await overHttp1('/seen', headers, undefined, { createConnection: () => tls })
    expect(forged.json).toMatchObject({ ip: '127.0.0.1' })
    expect(forged.json.handshake.ja4).toMatch(node24)
    tls.destroy()
    const proxied = await overHttp1('/seen', headers, undefined, { localAddress: '127.0.0.3' })
    expect(proxied.json).toMatchObject({ ip: '203.0.113.9', handshake: { ja4: headers['x-ja4'] } })
  })

  test('what is no hello ends', async () => {
    const noise = connect(port, '127.0.0.1').on('error', () => {})
    noise.end('GET / HTTP/1.1\r\n\r\n').resume()
    await once(noise, 'close')
  })

  test('what says nothing in time ends', async () => {
    const other = await start({ handshakeMs: 50 })
    const silent = connect(other.port, '127.0.0.1').resume()
    await once(silent, 'close')
    await other.app.close()
  })

  test('too many at once are refused, until others are through or gone', async () => {
    const silent = Array.from({ length: maxUnfinished }, () => connect(port, '127.0.0.1').resume())
    await Promise.all(silent.map((socket) => once(socket, 'connect')))
    const refused = connect(port, '127.0.0.1')
      .resume()
      .on('error', () => {})
    await once(refused, 'close')
    expect(silent.every(({ closed }) => !closed)).toBe(true)
    for (const socket of silent) socket.destroy()
    await eventually(async () => expect((await overHttp1('/seen')).status).toBe(200))
  })

  test('a certificate that changes is served, and one that is broken is not', async () => {
    const names = async () => {
      const socket = connectTls({
        port,
        host: '127.0.0.1',
        servername: 'localhost',
        rejectUnauthorized: false,
      })
      await once(socket, 'secureConnect')
      const { subjectaltname } = socket.getPeerCertificate()
      socket.destroy()
      return subjectaltname
    }
    expect(await names()).toBe('DNS:localhost')
    writeCertificate('other.example')
    await eventually(async () => expect(await names()).toBe('DNS:other.example'))
    const whole = readFileSync(files().certFile)
    for (const [file, broken] of [
      [files().certFile, ''],
      [files().certFile, whole.subarray(0, 200)],
      [files().keyFile, 'no key'],
    ] as const) {
      writeFileSync(files().certFile, whole)
      writeFileSync(file, broken)
      await expect(readCertificate(files())).rejects.toThrow(/TLS_CERT_FILE/)
      expect(await names()).toBe('DNS:other.example')
    }
  })

  test('a stop says GOAWAY and answers what was begun', async () => {
    const session = http2()
    const stream = session.request({ ':path': '/held' })
    const answered = once(stream, 'response')
    const one = overHttp1('/held')
    await eventually(() => expect(waiting).toBe(2))
    isStopping = true
    const goaway = once(session, 'goaway')
    const closed = app.close()
    expect((await goaway)[0]).toBe(constants.NGHTTP2_NO_ERROR)
    release()
    expect((await answered)[0][':status']).toBe(200)
    expect(await text(stream)).toBe('{"ended":true}')
    expect((await one).json).toEqual({ ended: true })
    await closed
  })
})

// Passes on a byte at a time at first.
function trickle(socket: Socket): Socket {
  const write = socket.write.bind(socket)
  socket.setNoDelay(true)
  let isFirst = true
  return Object.assign(socket, {
    write(chunk: Buffer, ...rest: []) {
      if (!isFirst) return write(chunk, ...rest)
      isFirst = false
      for (let at = 0; at < 50; at++) write(chunk.subarray(at, at + 1))
      return write(chunk.subarray(50), ...rest)
    },
  })
}
