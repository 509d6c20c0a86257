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
  /** Unparsed body, so that signatures can be verified. */
  body: string
}

export interface LoopbackResponse {
  status: number
  headers?: Record<string, string>
  body?: string
}

interface LoopbackOptions {
  port: number
  /** Address to listen on. Default: 127.0.0.1, which only this machine can reach. */
  host?: string
  handle: (request: LoopbackRequest) => Promise<LoopbackResponse>
}

const maxBytes = 1024 * 1024

/** Starts an HTTP server that responds with the result of `handle`, 500 if it throws, or 413 to bodies above 1 MB. */
export async function startLoopback({
  port,
  host = '127.0.0.1',
  handle,
}: LoopbackOptions): Promise<{ url: string; close(): Promise<void> }> {
  const server = createServer((request, response) => {
    respond(request, response, handle).catch(() => end(response, { status: 500 }))
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
  handle: LoopbackOptions['handle'],
): Promise<void> {
  const body = await readBody(request)
  if (body === undefined) return end(response, { status: 413 })
  const { method = '', url = '/', headers } = request
  end(response, await handle({ method, url, headers, body }))
}

// Returns undefined if the body is too large.
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

function end(response: ServerResponse, { status, headers = {}, body }: LoopbackResponse): void {
  if (response.headersSent) return
  response.writeHead(status, headers).end(body)
}
