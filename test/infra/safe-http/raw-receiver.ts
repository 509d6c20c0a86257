import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { afterEach } from 'vitest'
import { createAddressRules } from '../../../infra/safe-http/addresses.ts'
import {
  createWebhookClient,
  type PostOptions,
  type WebhookClient,
  type WebhookClientOptions,
} from '../../../infra/safe-http/client.ts'
import { startDnsServer } from '../../support/dns-server.ts'

export interface RawRequest {
  socket: Socket
  text: string
  nth: number
}

export interface RawReceiver {
  port: number
  connections: number
  requests: string[]
  sockets: Set<Socket>
}

const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

export function afterwards(cleanUp: () => unknown): void {
  cleanUps.push(cleanUp)
}

/** Starts a receiver that calls `respond` with each complete request. */
export async function startRawReceiver(
  respond: (request: RawRequest) => void,
  options: {
    host?: string
    port?: number
    tls?: { key: string; cert: string; maxVersion?: 'TLSv1.2' }
  } = {},
): Promise<RawReceiver> {
  const receiver: RawReceiver = { port: 0, connections: 0, requests: [], sockets: new Set() }
  function serve(socket: Socket) {
    receiver.connections++
    let nth = 0
    let received = ''
    socket.on('error', () => {})
    socket.on('data', (chunk) => {
      received += chunk.toString('latin1')
      const length = requestLength(received)
      if (length === undefined || received.length < length) return
      const text = received.slice(0, length)
      received = received.slice(length)
      receiver.requests.push(text)
      respond({ socket, text, nth: ++nth })
    })
  }
  const server = options.tls ? createTlsServer(options.tls, serve) : createServer(serve)
  server.on('tlsClientError', () => {})
  closeAfterTest(server, receiver.sockets)
  server.listen(options.port ?? 0, options.host ?? '127.0.0.1')
  await once(server, 'listening')
  receiver.port = portOf(server)
  return receiver
}

function requestLength(text: string): number | undefined {
  const headEnd = text.indexOf('\r\n\r\n')
  if (headEnd < 0) return undefined
  const bodyLength = /\r\ncontent-length: (\d+)\r\n/i.exec(text.slice(0, headEnd + 2))?.[1] ?? '0'
  return headEnd + 4 + Number(bodyLength)
}

/** Starts a DNS server that is closed after the test. */
export async function startDns(replyTo: Parameters<typeof startDnsServer>[0]) {
  const dns = await startDnsServer(replyTo)
  afterwards(() => dns.close())
  return dns
}

/** Records open sockets in `sockets`, and closes server and sockets after the test. */
export function closeAfterTest(server: Server, sockets = new Set<Socket>()): void {
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  afterwards(async () => {
    const closed = once(server, 'close')
    server.close()
    for (const socket of sockets) socket.destroy()
    await closed
  })
}

export function portOf(server: Server): number {
  const address: AddressInfo | string | null = server.address()
  if (address === null || typeof address === 'string') throw new Error('the server has no port')
  return address.port
}

/** Creates a client that by default may reach 127.0.0.0/8, and is closed after the test. */
export function createTestClient(options: Partial<WebhookClientOptions> = {}): WebhookClient {
  const client = createWebhookClient({ rules: createAddressRules(['127.0.0.0/8']), ...options })
  afterwards(() => client.close())
  return client
}

export function postTo(url: string, rest: Partial<PostOptions> = {}): PostOptions {
  return {
    url,
    headers: { 'content-type': 'application/json', 'Idempotency-Key': 'evt_1' },
    body: '{"a":"ä"}',
    ...rest,
  }
}

export function httpText(status: number, body = '', headers = ''): string {
  return `HTTP/1.1 ${status} Whatever\r\n${headers}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
}
