import { request as httpRequest } from 'node:http'
import { connect } from 'node:net'
import { buffer, text } from 'node:stream/consumers'
import type { DeliveryEnvelope } from '../../infra/wire/delivery-envelope.ts'

export type Headers = Record<string, string>

export interface Request {
  method: string
  path: string
  headers?: Headers | undefined
  /** An object is sent as JSON. */
  body?: string | Uint8Array | object | undefined
}

export interface Answer {
  status: number
  /** Names and values in turn, as they came. */
  rawHeaders: string[]
  body: Buffer
}

/** Sends the headers in their order and adds only what HTTP needs. */
export async function send(
  baseUrl: string,
  { method, path, headers = {}, body }: Request,
): Promise<Answer> {
  const isJson = typeof body === 'object' && !(body instanceof Uint8Array)
  const payload = isJson ? JSON.stringify(body) : body
  const { hostname, port } = new URL(baseUrl)
  const type = isJson && { 'content-type': 'application/json' }
  // Node leaves the length out where a method seldom has a body: the server would read the body as another request.
  const length = payload !== undefined && { 'content-length': String(Buffer.byteLength(payload)) }
  const all = { ...type, ...headers, ...length }
  const { promise, resolve, reject } = Promise.withResolvers<Answer>()
  const request = httpRequest(
    { hostname, port, method, path, headers: all, agent: false },
    (response) => {
      const { statusCode = 0, rawHeaders } = response
      buffer(response).then(
        (bytes) => resolve({ status: statusCode, rawHeaders, body: bytes }),
        reject,
      )
    },
  )
  request.on('error', reject)
  request.end(payload)
  return promise
}

/** Sends bytes that no HTTP client would write, and reads until the server closes. */
export async function sendRaw(baseUrl: string, raw: string): Promise<Answer> {
  const { hostname, port } = new URL(baseUrl)
  const socket = connect(Number(port), hostname)
  socket.write(raw)
  const answer = await text(socket)
  const [head = '', ...rest] = answer.split('\r\n\r\n')
  const [first = '', ...lines] = head.split('\r\n')
  const rawHeaders = lines.flatMap((line) => {
    const [name = '', ...value] = line.split(': ')
    return [name, value.join(': ')]
  })
  return {
    status: Number(first.split(' ')[1]),
    rawHeaders,
    body: Buffer.from(rest.join('\r\n\r\n')),
  }
}

/** Members of answers that later requests need; an answer has those of its kind. */
export interface Data {
  id: string
  revealed_key: string
  key_preview: string
  poll_token: string
  approve_token: string
  code: string
  event_id: string
  delivery_bundle: { gate: DeliveryEnvelope }
}

interface Envelope<T> {
  data: T
  pagination: { next_cursor: string }
}

export function json<T = Data>(answer: Answer): Envelope<T> {
  return JSON.parse(answer.body.toString('utf8'))
}

export function headerOf({ rawHeaders }: Answer, name: string): string | undefined {
  const at = rawHeaders.findIndex((one, i) => i % 2 === 0 && one.toLowerCase() === name)
  return at < 0 ? undefined : rawHeaders[at + 1]
}
