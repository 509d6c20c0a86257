import { once } from 'node:events'
import { maxHeaderSize } from 'node:http'
import {
  constants,
  createSecureServer,
  type Http2SecureServer,
  type Http2ServerRequest,
  type Http2ServerResponse,
} from 'node:http2'
import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import type { Logger } from '../../telemetry.ts'
import { type ListenAddress, problem } from '../listening.ts'
import { type Certificate, type CertificateFiles, readCertificate } from './certificate.ts'
import { readFirstBytes } from './first-bytes.ts'

export interface TlsOptions extends CertificateFiles {
  logger: Pick<Logger, 'info' | 'warn'>
  /** Connections that may be between their first byte and the end of the handshake (default 1024). */
  maxUnfinished?: number
  /** How long they may take (default 10 s). */
  handshakeMs?: number
  /** How long a request may take to come (default 30 s), as without TLS. */
  requestMs?: number
  /** How long a connection, or at most twice as long an answer that its client does not take, may stand still (default 72 s). */
  idleMs?: number
  /** How often the files are read again (default 10 s). */
  reloadMs?: number
  /** What is still open so long after a stop began is cut off (default 5 s). */
  closeMs?: number
}

export interface TlsListener {
  /** Resolves with the port; rejects with a message for the operator where it cannot be had. */
  listen(place: ListenAddress): Promise<number>
}

const maxStreams = 100

/**
 * A second way to the app: HTTP/2 and HTTP/1.1 over TLS, with the JA4 of each connection in `app.hellos`. It stops with
 * the app: clients are told by GOAWAY, and what was begun is answered. Call before the app listens.
 */
export async function createTlsListener(app: FastifyInstance, options: TlsOptions): Promise<TlsListener> {
  const { handshakeMs = 10_000, closeMs = 5000, requestMs = 30_000, idleMs = 72_000 } = options
  const first = await readCertificate(options)
  const server = createSecureServer({
    ...first,
    allowHTTP1: true,
    handshakeTimeout: handshakeMs,
    settings: { maxConcurrentStreams: maxStreams, maxHeaderListSize: maxHeaderSize },
    ...{ requireHostHeader: false },
  })
  Object.assign(server, { requestTimeout: requestMs, keepAliveTimeout: idleMs })
  const { open, ja4s } = readHellos(server, options)
  server.on('request', (request, response) => {
    const ja4 = ja4s.get(nameOf(request.socket))
    if (ja4) app.hellos.set(request, ja4)
    if (request.httpVersionMajor === 2) likeHttp1(request, response, { requestMs, idleMs })
    app.server.emit('request', request, response)
  })
  server.on('session', (session) => session.setTimeout(idleMs, () => session.close()))
  server.on('clientError', (error, socket) => app.server.emit('clientError', error, socket))
  const reload = reloadChanged(server, { ...options, first })
  let closed: Promise<unknown> | undefined
  app.addHook('preClose', async () => {
    clearInterval(reload)
    if (!server.listening) return
    closed = once(server, 'close')
    server.close()
    setTimeout(() => {
      for (const socket of open) socket.destroy()
    }, closeMs).unref()
  })
  app.addHook('onClose', async () => void (await closed))
  return {
    async listen(place) {
      await once(server.listen(place.port, place.host), 'listening').catch((cause) => {
        throw new Error(problem(place, cause), { cause })
      })
      const address = server.address()
      return address !== null && typeof address === 'object' ? address.port : place.port
    },
  }
}

type Named = Pick<Socket, 'remoteAddress' | 'remotePort'>

// TLS and HTTP/2 wrap the socket, so that the two ends of it are what tells which one a request came by.
const nameOf = ({ remoteAddress, remotePort }: Named) => `${remoteAddress} ${remotePort}`

// Stands before the server's own listener, which takes the connection once the hello was read.
function readHellos(server: Http2SecureServer, { maxUnfinished = 1024, handshakeMs = 10_000 }: TlsOptions) {
  const [begin] = server.listeners('connection')
  const open = new Set<Socket>()
  const unfinished = new Map<string, NodeJS.Timeout>()
  const ja4s = new Map<string, string>()
  const finish = (name: string) => {
    clearTimeout(unfinished.get(name))
    unfinished.delete(name)
  }
  server.removeAllListeners('connection')
  server.on('connection', (socket: Socket) => {
    const name = nameOf(socket)
    socket.on('error', () => {})
    if (unfinished.size >= maxUnfinished) return socket.destroy()
    open.add(socket)
    unfinished.set(name, setTimeout(() => socket.destroy(), handshakeMs).unref())
    socket.once('close', () => {
      finish(name)
      open.delete(socket)
      ja4s.delete(name)
    })
    readFirstBytes(socket, (ja4) => {
      if (ja4) ja4s.set(name, ja4)
      if (begin) Reflect.apply(begin, server, [socket])
    })
  })
  server.on('secureConnection', (socket) => finish(nameOf(socket)))
  return { open, ja4s }
}

// Whatever reads requests knows HTTP/1.1: what HTTP/2 says otherwise is put as it would be there. A client that opens no
// window for its answer would hold that for ever, so a stream that stands still is cut off. Its own time-out does not see
// that on a busy connection, because it takes what answers a PING for progress.
function likeHttp1(
  request: Http2ServerRequest,
  { stream }: Http2ServerResponse,
  { requestMs, idleMs }: { requestMs: number; idleMs: number },
): void {
  if (request.authority) request.headers.host = request.authority
  const cancel = () => stream.close(constants.NGHTTP2_CANCEL)
  const coming = setTimeout(() => request.complete || cancel(), requestMs)
  let untaken = 0
  const going = setInterval(() => {
    if (untaken > 0 && stream.bufferSize === untaken) cancel()
    untaken = stream.bufferSize
  }, idleMs)
  stream.once('close', () => {
    clearTimeout(coming)
    clearInterval(going)
  })
}

// Nothing is set anew without need, because sessions of before could then not be resumed.
function reloadChanged(
  server: Http2SecureServer,
  { first, logger, reloadMs = 10_000, ...files }: TlsOptions & { first: Certificate },
): NodeJS.Timeout {
  let current = first
  const reload = async () => {
    const next = await readCertificate(files)
    if (next.cert === current.cert && next.key === current.key) return
    server.setSecureContext(next)
    current = next
    logger.info('the certificate was read again')
  }
  const warn = (err: unknown) =>
    logger.warn({ err }, 'the certificate was not read again, and the one before stays')
  return setInterval(() => void reload().catch(warn), reloadMs).unref()
}
