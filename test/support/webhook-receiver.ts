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

/** Received request and its response. Times are epoch milliseconds. */
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
  /** Time when the response was complete; undefined until then. */
  answeredAt?: number
}

/** Request to which a receiver chooses a response. */
export type Incoming = Omit<Received, 'behaviour' | 'meaning' | 'answeredAt'>

export interface ReceiverOptions {
  /** Default: accepts all requests. */
  choose?: (incoming: Incoming) => Behaviour
  /** Enables HTTPS with the certificate that this returns for each connection. */
  certificate?: () => Certificate
  /** Port to listen on. Default: any. */
  port?: number
}

export interface WebhookReceiver {
  port: number
  url(path: string): string
  /** Requests in order of arrival. */
  requests: readonly Received[]
  /** Returns the number of opened connections, with or without requests. */
  connections(): number
  /** Verifies later requests to this path: they must be signed with one of the secrets. */
  expectSignature(path: string, ...secrets: string[]): void
  /** Problems with requests: missing headers, invalid signatures, conflicting ids. */
  problems: readonly string[]
  /** Resolves after request number `count` (from 1) arrived, before its response is sent. */
  reached(count: number): Promise<void>
  /** Closes the connections and the port. */
  close(): Promise<void>
}

/** Starts a customer's webhook server. It checks and records each request, and responds as `choose` says. */
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

  // Ignores requests that were aborted because the sender was killed.
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

/** Returns true if both signature headers are valid: one by the published package, the other by the documented rule. */
function isSigned(incoming: Incoming, secret: string): boolean {
  return verifiesStandard(incoming, secret) && verifiesOwn(incoming, secret)
}

/** Returns true if the `webhook-signature` header has a signature by this secret. */
export function verifiesStandard({ headers, body }: Incoming, secret: string): boolean {
  const texts = Object.entries(headers).map(([name, value]) => [name, String(value)])
  try {
    new Webhook(secret).verify(body, Object.fromEntries(texts))
    return true
  } catch {
    return false
  }
}

/** Returns true if `X-Foil-Signature`, which only has the newest secret's signature, is by this secret. */
export function verifiesOwn({ headers, body }: Incoming, secret: string): boolean {
  const signed = `${headers['x-foil-timestamp']}.${body}`
  return headers['x-foil-signature'] === createHmac('sha256', secret).update(signed).digest('hex')
}
