import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { createServer as createTcpServer, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { Webhook } from 'standardwebhooks'
import type { Certificate } from './tls-certificates.ts'
import { accept, type Behaviour, type Meaning } from './webhook-behaviours.ts'

/** A request as it arrived, and what was done with it. Times are epoch milliseconds. */
export interface Received {
  path: string
  eventId: string
  headers: IncomingHttpHeaders
  body: string
  receivedAt: number
  /** 1 for the first request about this event at this path. */
  nth: number
  behaviour: string
  meaning: Meaning
  /** When there was nothing more to send; undefined until then. */
  answeredAt?: number
}

/** What a receiver knows when it decides how to answer. */
export type Incoming = Omit<Received, 'behaviour' | 'meaning' | 'answeredAt'>

export interface ReceiverOptions {
  /** Default: accepts all. */
  choose?: (incoming: Incoming) => Behaviour
  /** Given = it speaks HTTPS, with the certificate that this returns for a connection. */
  certificate?: () => Certificate
  /** Of the port; default any. */
  port?: number
}

export interface WebhookReceiver {
  port: number
  url(path: string): string
  /** In the order of arrival. */
  requests: readonly Received[]
  /** Connections that were opened, whatever came over them. */
  connections(): number
  /** Requests to this path are verified from now on: one of the secrets must have signed them. */
  expectSignature(path: string, ...secrets: string[]): void
  /** What was wrong with requests: missing headers, bad signatures, ids that do not agree. */
  problems: readonly string[]
  /** Resolves while request number `count` (from 1) is being answered, before its answer is sent. */
  reached(count: number): Promise<void>
  /** Ends the connections and frees the port. */
  close(): Promise<void>
}

/** A customer's server that is sent webhooks: it checks, records and answers each request as `choose` says. */
export async function startWebhookReceiver(
  options: ReceiverOptions = {},
): Promise<WebhookReceiver> {
  const { choose = () => accept, certificate } = options
  const requests: Received[] = []
  const problems: string[] = []
  const counts = new Map<string, number>()
  const secrets = new Map<string, string[]>()
  const waiting: { count: number; resolve: () => void }[] = []
  const sockets = new Set<Socket>()
  let connections = 0

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const incoming = await read(request)
    problems.push(...problemsOf(incoming, secrets.get(incoming.path)))
    const behaviour = choose(incoming)
    const received: Received = {
      ...incoming,
      behaviour: behaviour.name,
      meaning: behaviour.meaning,
    }
    requests.push(received)
    for (const { count, resolve } of waiting) if (count === requests.length) resolve()
    await behaviour.answer(request, response)
    received.answeredAt = Date.now()
  }

  async function read(request: IncomingMessage): Promise<Incoming> {
    const receivedAt = Date.now()
    const body = await text(request)
    const path = request.url ?? ''
    const eventId = String(request.headers['webhook-id'])
    const nth = (counts.get(path + eventId) ?? 0) + 1
    counts.set(path + eventId, nth)
    return { path, eventId, headers: request.headers, body, receivedAt, nth }
  }

  // A sender that was killed in the middle of its request is no problem of the receiver's.
  const listener = (request: IncomingMessage, response: ServerResponse) =>
    void handle(request, response).catch(() => request.socket.destroy())
  const plain = createServer(listener)
  const secure = new Map<Certificate, ReturnType<typeof createTlsServer>>()
  const secureFor = (own: Certificate) => {
    const known = secure.get(own)
    if (known) return known
    const server = createTlsServer(own, listener)
    secure.set(own, server)
    return server
  }
  const server = createTcpServer((socket) => {
    connections++
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
    const inner = certificate ? secureFor(certificate()) : plain
    inner.emit('connection', socket)
  })
  server.listen(options.port ?? 0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the receiver has no port')
  const origin = `${certificate ? 'https' : 'http'}://127.0.0.1:${address.port}`

  return {
    port: address.port,
    url: (path) => origin + path,
    requests,
    connections: () => connections,
    expectSignature: (path, ...all) => void secrets.set(path, all),
    problems,
    reached(count) {
      const { promise, resolve } = Promise.withResolvers<void>()
      if (requests.length >= count) resolve()
      else waiting.push({ count, resolve })
      return promise
    },
    async close() {
      const closed = once(server, 'close')
      server.close()
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}

function problemsOf(incoming: Incoming, secrets: string[] | undefined): string[] {
  const { path, eventId, headers, body } = incoming
  const checks: [isWrong: boolean, problem: string][] = [
    [headers['idempotency-key'] !== eventId, 'Idempotency-Key is not the event id'],
    [bodyId(body) !== eventId, "the body's id is not webhook-id"],
    [headers['x-foil-timestamp'] !== headers['webhook-timestamp'], 'two different timestamps'],
    [secrets?.some((secret) => isSigned(incoming, secret)) === false, 'no secret signed it'],
  ]
  return checks.flatMap(([isWrong, problem]) => (isWrong ? [`${path} ${eventId}: ${problem}`] : []))
}

function bodyId(body: string): unknown {
  const parsed: unknown = JSON.parse(body)
  return typeof parsed === 'object' && parsed !== null && 'id' in parsed ? parsed.id : undefined
}

/** By both headers: the published package for one, the documented rule for the other. */
function isSigned(incoming: Incoming, secret: string): boolean {
  return verifiesStandard(incoming, secret) && verifiesOwn(incoming, secret)
}

/** Whether the `webhook-signature` header has an entry by this secret. */
export function verifiesStandard({ headers, body }: Incoming, secret: string): boolean {
  const texts = Object.entries(headers).map(([name, value]) => [name, String(value)])
  try {
    new Webhook(secret).verify(body, Object.fromEntries(texts))
    return true
  } catch {
    return false
  }
}

/** Whether `X-Foil-Signature` is by this secret; it has room for the newest only. */
export function verifiesOwn({ headers, body }: Incoming, secret: string): boolean {
  const signed = `${headers['x-foil-timestamp']}.${body}`
  return headers['x-foil-signature'] === createHmac('sha256', secret).update(signed).digest('hex')
}
