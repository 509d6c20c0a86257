import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { TLSSocket } from 'node:tls'

/** Meaning of a receiver's response for the sender. Only `acknowledged` ends a delivery. */
export type Meaning = 'acknowledged' | 'refused'

/** Response of a receiver to a request whose body was read. */
export interface Behaviour {
  name: string
  meaning: Meaning
  answer(request: IncomingMessage, response: ServerResponse): Promise<void> | void
}

export const accept: Behaviour = {
  name: 'accept',
  meaning: 'acknowledged',
  answer: (_request, response) => void response.end('received'),
}

/** Responds after this many milliseconds. */
export function acceptAfter(ms: number): Behaviour {
  return {
    name: `accept after ${ms} ms`,
    meaning: 'acknowledged',
    async answer(_request, response) {
      await delay(ms)
      response.end('received')
    },
  }
}

export function status(code: number, headers: Record<string, string> = {}): Behaviour {
  return {
    name: [code, ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`)].join(' '),
    meaning: code >= 200 && code < 300 ? 'acknowledged' : 'refused',
    answer: (_request, response) => void response.writeHead(code, headers).end(),
  }
}

/** Responds 429 with an HTTP date this many seconds from now, rounded to seconds. */
export function tooManyUntil(seconds: number): Behaviour {
  return {
    name: '429 until a date',
    meaning: 'refused',
    answer(_request, response) {
      const until = new Date(Date.now() + seconds * 1000).toUTCString()
      response.writeHead(429, { 'retry-after': until }).end()
    },
  }
}

/** Never responds, and keeps the connection open. */
export const silence: Behaviour = { name: 'silence', meaning: 'refused', answer: () => {} }

export const resetBeforeHeaders: Behaviour = {
  name: 'reset before the headers',
  meaning: 'refused',
  answer: (request) => reset(request.socket),
}

/** Responds 200 with a truncated body. */
export const halfBody: Behaviour = {
  name: 'half a body, then a reset',
  meaning: 'refused',
  answer(request, response) {
    response.writeHead(200, { 'content-length': '100' })
    response.write('x'.repeat(50), () => setImmediate(() => reset(request.socket)))
  },
}

/** Responds 200 with a body that stalls in the middle. */
export const stalledBody: Behaviour = {
  name: 'half a body, then silence',
  meaning: 'refused',
  answer(_request, response) {
    response.writeHead(200, { 'content-length': '100' })
    response.write('x'.repeat(50))
  },
}

/** Responds 200 with an endless body. The status counts; the sender must stop reading. */
export const endlessBody: Behaviour = {
  name: 'endless body',
  meaning: 'acknowledged',
  async answer(_request, response) {
    response.writeHead(200)
    const chunk = Buffer.alloc(16 * 1024, 'x')
    while (!response.destroyed) {
      if (!response.write(chunk)) await drained(response)
    }
  },
}

export const malformed: Behaviour = {
  name: 'not HTTP',
  meaning: 'refused',
  answer: (request) => void request.socket.end('This is not HTTP.\r\n\r\n'),
}

/** Redirects to `url`. */
export function redirect(code: 301 | 302 | 307 | 308, url: string): Behaviour {
  return { ...status(code, { location: url }), name: `redirect ${code}` }
}

/** Resets the TCP connection. TLS sockets cannot be reset, so they end without a close_notify. */
function reset(socket: Socket): void {
  if (socket instanceof TLSSocket) socket.destroy()
  else socket.resetAndDestroy()
}

async function drained(response: ServerResponse): Promise<void> {
  const done = new AbortController()
  const happened = ['drain', 'close'].map((event) => once(response, event, { signal: done.signal }))
  await Promise.race(happened)
  done.abort()
  await Promise.allSettled(happened)
}
