import { once } from 'node:events'
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http'

export interface LoopbackRequest {
  method: string
  url: string
  headers: IncomingHttpHeaders
  /** As it came; a signature is over these bytes. */
  body: string
}

export interface LoopbackAnswer {
  status: number
  headers?: Record<string, string>
  body?: string
}

interface LoopbackOptions {
  port: number
  /** Default 127.0.0.1, which only this machine reaches. */
  host?: string
  answer: (request: LoopbackRequest) => Promise<LoopbackAnswer>
}

const maxBytes = 1024 * 1024

export async function serveLoopback({
  port,
  host = '127.0.0.1',
  answer,
}: LoopbackOptions): Promise<{ url: string; close(): Promise<void> }> {
  const server = createServer((request, response) => {
    respond(request, response, answer).catch(() => end(response, { status: 500 }))
  })
  await once(server.listen(port, host), 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the server has no port')
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${address.port}/`,
    async close() {
      server.close().closeAllConnections()
      await once(server, 'close')
    },
  }
}

async function respond(
  request: IncomingMessage,
  response: ServerResponse,
  answer: LoopbackOptions['answer'],
): Promise<void> {
  const body = await readBody(request)
  if (body === undefined) return end(response, { status: 413 })
  const { method = '', url = '/', headers } = request
  end(response, await answer({ method, url, headers, body }))
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

function end(response: ServerResponse, { status, headers = {}, body }: LoopbackAnswer): void {
  if (response.headersSent) return
  response.writeHead(status, headers).end(body)
}
