import { once } from 'node:events'
import { createServer as createHttps } from 'node:https'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { readClientHello } from './tls/client-hello.ts'
import { createAuthority } from './tls-certificates.ts'

export interface TlsRelay {
  port: number
  /** The first bytes of each connection, up to the end of its hello, in the order of connecting. */
  hellos: Buffer[]
  close(): Promise<void>
}

// Each picture comes over a connection of its own, so that browsers resume what they began.
const page = `<!doctype html>${[1, 2, 3].map((n) => `<img src="/${n}.png">`).join('')}`

/** Stands before the TLS server at `target`, and records what clients say first. */
export async function startTlsRelay(target: number): Promise<TlsRelay> {
  const hellos: Buffer[] = []
  const open = new Set<Socket>()
  const relay = createServer((client) => {
    const upstream = connect(target, '127.0.0.1')
    recordHello(client, hellos)
    client.pipe(upstream)
    upstream.pipe(client)
    for (const socket of [client, upstream]) {
      open.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => [client, upstream].map((one) => one.destroy()))
    }
  })
  const port = await listening(relay)
  return {
    port,
    hellos,
    async close() {
      for (const socket of open) socket.destroy()
      await once(relay.close(), 'close')
    },
  }
}

function recordHello(client: Socket, hellos: Buffer[]): void {
  let bytes = Buffer.alloc(0)
  client.on('data', function read(chunk: Buffer) {
    bytes = Buffer.concat([bytes, chunk])
    if (readClientHello(bytes).state === 'incomplete') return
    hellos.push(bytes)
    client.off('data', read)
  })
}

/** A server that closes each connection after one answer. */
export async function startTlsServer(): Promise<{ port: number; close(): Promise<void> }> {
  const certificate = createAuthority().issue({ host: 'localhost' })
  const server = createHttps(certificate, (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/html', connection: 'close' }).end(page)
  })
  server.on('tlsClientError', () => {})
  const port = await listening(server)
  return {
    port,
    async close() {
      server.closeAllConnections()
      await once(server.close(), 'close')
    },
  }
}

async function listening(server: Server): Promise<number> {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the server has no port')
  return address.port
}
