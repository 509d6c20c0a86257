import type { FastifyInstance } from 'fastify'

export const publicUrl = 'https://tidegate.example'

export interface Send {
  method?: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  url: string
  /** Secret key or token. */
  key?: string | undefined
  /** Sent as JSON. */
  body?: unknown
  /** Sent as it is, in place of a body. */
  payload?: string
  headers?: Record<string, string>
  /** The client's address. */
  ip?: string
}

/** Sends a request without a socket. Returns the answer, its body read as JSON. */
export async function sendTo(
  app: FastifyInstance,
  { method = 'GET', url, key, ip, ...content }: Send,
) {
  const {
    body,
    headers = {},
    payload = body === undefined ? undefined : JSON.stringify(body),
  } = content
  const response = await app.inject({
    method,
    url,
    ...(ip !== undefined && { remoteAddress: ip }),
    headers: {
      ...(key !== undefined && { authorization: `Bearer ${key}` }),
      ...(payload !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(payload !== undefined && { payload }),
  })
  const { statusCode: status, body: text } = response
  return { status, headers: response.headers, body: text ? JSON.parse(text) : undefined }
}
