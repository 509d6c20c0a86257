import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Received {
  headers: IncomingHttpHeaders
  /** As it came; a signature is over these bytes. */
  body: string
}

export interface Answer {
  status: number
  body?: string
}

export interface Receiver {
  url: string
  close(): Promise<void>
}

interface ReceiverOptions {
  /** 0 = a free one. */
  port: number
  /** What becomes of a request; when it throws, the answer is 500. */
  answer: (received: Received) => Promise<Answer>
}

const maxBytes = 1024 * 1024

/** An HTTP server on this machine's loopback address that hands over each request whole. Rejects when the port is taken. */
export async function startReceiver({ port, answer }: ReceiverOptions): Promise<Receiver> {
  const server = createServer((request, response) => {
    respond(request, response, answer).catch(() => end(response, { status: 500 }))
  })
  const { promise: listening, resolve, reject } = Promise.withResolvers<void>()
  server.once('error', reject)
  server.listen(port, '127.0.0.1', resolve)
  await listening
  return {
    url: `http://127.0.0.1:${portOf(server.address())}/`,
    async close() {
      const { promise: closed, resolve: onClosed } = Promise.withResolvers<void>()
      server.close(() => onClosed())
      server.closeAllConnections()
      await closed
    },
  }
}

function portOf(address: AddressInfo | string | null): number {
  if (address === null || typeof address === 'string') throw new Error('the receiver has no port')
  return address.port
}

async function respond(
  request: IncomingMessage,
  response: ServerResponse,
  answer: ReceiverOptions['answer'],
): Promise<void> {
  if (request.method !== 'POST') return end(response, { status: 405 })
  const body = await readBody(request)
  if (body === undefined) return end(response, { status: 413 })
  end(response, await answer({ headers: request.headers, body }))
}

async function readBody(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request) {
    size += chunk.length
    if (size > maxBytes) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}

function end(response: ServerResponse, { status, body }: Answer): void {
  if (response.headersSent) return
  response.writeHead(status).end(body)
}
