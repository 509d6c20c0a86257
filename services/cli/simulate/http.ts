import http from 'node:http'
import https from 'node:https'

export interface HttpRequest {
  method: 'GET' | 'POST'
  headers: Record<string, string>
  body?: string | Uint8Array
}

export interface HttpAnswer {
  status: number
  headers: { get(name: string): string | null }
  body: Buffer
}

export interface HttpClient {
  request(url: string, request: HttpRequest): Promise<HttpAnswer>
  close(): void
}

/**
 * HTTP over kept connections. node:http rather than the global fetch, which takes twice the processor time a
 * request here: the generator shares the machine with the server that it measures.
 */
export function createHttpClient({ connections }: { connections: number }): HttpClient {
  const options = { keepAlive: true, maxSockets: connections }
  const plain = new http.Agent(options)
  const secure = new https.Agent(options)

  function request(url: string, { method, headers, body }: HttpRequest): Promise<HttpAnswer> {
    const { promise, resolve, reject } = Promise.withResolvers<HttpAnswer>()
    const target = new URL(url)
    const sending =
      target.protocol === 'https:'
        ? https.request(target, { agent: secure, method, headers })
        : http.request(target, { agent: plain, method, headers })
    sending.once('response', (response) => {
      const chunks: Buffer[] = []
      // The connection can also break after the answer has begun.
      response.on('error', reject)
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () => resolve(answerOf(response, Buffer.concat(chunks))))
    })
    sending.on('error', reject)
    sending.setTimeout(30_000, () => sending.destroy(new Error('no answer within 30 s')))
    sending.end(body)
    return promise
  }

  return {
    request,
    close() {
      plain.destroy()
      secure.destroy()
    },
  }
}

function answerOf({ statusCode: status = 0, headers }: http.IncomingMessage, body: Buffer): HttpAnswer {
  const get = (name: string) => [headers[name.toLowerCase()]].flat()[0] ?? null
  return { status, headers: { get }, body }
}
